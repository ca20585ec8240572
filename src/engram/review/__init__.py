"""Review by a person: contradictions, candidates, memories that may be retired, and undo."""
