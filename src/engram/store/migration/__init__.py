"""Migration of a whole store between backends: one stream of plain records, written by a source and read by a target."""
