"""Writes, removes and checks Engram's entry in the configuration files of coding agents."""
