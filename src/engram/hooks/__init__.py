"""`engram hook EVENT`: what Claude Code's hooks run. Standard library only, exit 0 always, JSON or nothing on stdout."""
