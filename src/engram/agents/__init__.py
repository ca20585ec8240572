"""Coding agents: what Engram knows about each of them, and what it does with their files."""
