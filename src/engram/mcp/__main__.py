"""`python -P -m engram.mcp`: the same server as `engram mcp`, for a client that is given a Python instead of a program."""

from engram.launch import ignore_working_directory

if __name__ == "__main__":
    ignore_working_directory()
    from engram.mcp.server import main

    main()
