"""Long documents: read, split along their headings, quoted by exact place."""
