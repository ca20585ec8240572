"""PLUR's directory and its engrams, read and written without loss (`~/.plur`, schema generation 2)."""

from engram.dialects.plur.directory import PlurReading, PlurReport, Quarantined, read_plur, write_plur
from engram.dialects.plur.entry import from_plur, to_plur

__all__ = ["PlurReading", "PlurReport", "Quarantined", "from_plur", "read_plur", "to_plur", "write_plur"]
