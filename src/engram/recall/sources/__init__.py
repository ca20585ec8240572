"""Sources: files of other tools with information about a project. They are read and indexed, never written."""
