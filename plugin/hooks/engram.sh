#!/bin/sh
# Runs `engram mcp` or `engram hook EVENT`. Without the program, hooks stay silent but for one line at a session's start.
# Started as `sh engram.sh ARGUMENT` by hooks.json and .mcp.json: a shell starts ten times faster than Python.

if command -v engram >/dev/null 2>&1; then
    engram=engram
elif [ -x "${HOME:-}/.local/bin/engram" ]; then
    engram="$HOME/.local/bin/engram"
else
    engram=
fi

case "${1:-}" in
mcp)
    [ -n "$engram" ] && exec "$engram" mcp
    echo "The engram command is not installed; \`pipx install 'engram[mcp]'\` installs it." >&2
    exit 1
    ;;
session-start)
    if [ -z "$engram" ]; then
        printf '%s\n' "{\"systemMessage\":\"Engram's plugin is active, but the engram command is not installed; \`pipx install 'engram[mcp]'\` installs it.\"}"
    fi
    ;;
esac

if [ -n "$engram" ]; then
    # A version that does not know the event must not disturb the session, nor block it: exit 2 would.
    "$engram" hook "$1" 2>/dev/null
fi
exit 0
