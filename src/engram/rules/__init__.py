"""Pure functions of records and now. Nothing here reads a clock, a file or a setting by itself."""
