"""Engram's entry in the configuration files of coding agents: written, removed and checked."""
