"""What the store survives: real processes, real kills, real locks."""
