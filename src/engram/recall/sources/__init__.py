"""Sources: the files of other tools that say something about a project. They are read and indexed, never written."""
