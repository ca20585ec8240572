"""Adapters for agent frameworks. Each module needs its framework's package, which only that module imports."""
