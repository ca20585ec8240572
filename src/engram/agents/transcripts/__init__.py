"""Sessions of coding agents, read into a common form."""
