"""Pure functions of records and the current time. They read no clock, file or setting."""
