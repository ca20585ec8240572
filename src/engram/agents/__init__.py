"""Coding agents: their files and settings, and how Engram reads and writes them."""
