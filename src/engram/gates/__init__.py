"""The gates a memory passes before it is stored: one file per gate, `pipeline` runs them in order."""
