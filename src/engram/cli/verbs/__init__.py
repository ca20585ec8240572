"""One file per group of verbs, each imported only when one of its verbs is used."""
