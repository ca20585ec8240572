"""One module or package per coding agent.

Each has one record, `AGENT`. The module's name is the agent's, with `_` for `-`.
"""
