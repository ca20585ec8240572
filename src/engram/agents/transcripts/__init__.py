"""Sessions of coding agents, read into one form."""
