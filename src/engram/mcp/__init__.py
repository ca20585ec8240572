"""The tool server: Engram's verbs for agents, over the Model Context Protocol on stdin and stdout."""
