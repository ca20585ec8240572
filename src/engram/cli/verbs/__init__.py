"""One file per group of verbs; each is imported only when one of its verbs is asked for."""
