"""Tests of the files store."""
