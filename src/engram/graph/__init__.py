"""Relations between memories: creating them, following them, and rendering them for a prompt."""
