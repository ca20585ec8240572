"""Where memories live. Everything above this layer uses `protocol.Store` alone."""
