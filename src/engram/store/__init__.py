"""Storage of memories and events. All other layers depend only on `protocol.Store`."""
