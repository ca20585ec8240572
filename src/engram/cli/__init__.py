"""The command line: thin verbs over the client. stdout is data, stderr is talk."""
