"""The files that coding agents read as instructions: where they are, and which may be read."""
