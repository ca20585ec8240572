"""The command line: thin verbs over the client. Data goes to stdout, messages to stderr."""
