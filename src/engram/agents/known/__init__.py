"""One module, or package, per coding agent. Each has one record, `AGENT`; its file name is the agent's name with `_` for `-`."""
