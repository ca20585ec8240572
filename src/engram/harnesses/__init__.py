"""Coding agents that use Engram: their configuration files, and Engram's entry in them."""
