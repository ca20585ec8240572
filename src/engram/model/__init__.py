"""Plain records and the type registry. Nothing here does I/O or imports anything heavier than the standard library."""
