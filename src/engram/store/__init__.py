"""Where memories live. Everything above this room speaks to `protocol.Store` alone."""
