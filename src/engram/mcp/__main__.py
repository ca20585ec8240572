"""`python -m engram.mcp`: the same server as `engram mcp`, for a client that is given a Python instead of a program."""

from engram.mcp.server import main

if __name__ == "__main__":
    main()
