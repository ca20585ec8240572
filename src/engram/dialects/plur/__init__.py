"""PLUR's directory and its engrams: read in place, written to a new directory (`~/.plur`, schema generation 2)."""

from engram.dialects.plur.directory import read_plur, write_plur
from engram.dialects.plur.entry import from_plur, to_plur

__all__ = ["from_plur", "read_plur", "to_plur", "write_plur"]
