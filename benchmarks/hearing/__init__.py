"""How well Engram understands what it is told, measured through the public API on texts that none of its models were trained on."""
