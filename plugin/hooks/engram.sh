#!/bin/sh
# Runs `engram mcp` or `engram hook EVENT`; a shell starts ten times faster than Python.
# Whatever happens, a hook exits 0: exit 2 would block the session. Only a session's start says what is wrong with the program itself.

if command -v engram >/dev/null 2>&1; then
    engram=engram
elif [ -x "${HOME:-}/.local/bin/engram" ]; then
    engram="$HOME/.local/bin/engram"
else
    engram=
fi

say() {
    if [ "$event" = session-start ]; then
        printf '{"systemMessage":"%s"}\n' "$1"
    fi
}

event=${1:-}
missing="The engram command is not installed; \`pipx install '.[mcp]'\` in a checkout of Engram installs it (PyPI's package engram is another program)."
if [ "$event" = mcp ]; then
    [ -n "$engram" ] && exec "$engram" mcp
    echo "$missing" >&2
    exit 1
fi
if [ -z "$engram" ]; then
    say "Engram's plugin is active, but has nothing to run. $missing"
elif ! "$engram" hook "$event" 2>/dev/null; then
    say "The engram command cannot run this plugin's hooks; \`engram doctor\` says why, \`pipx upgrade engram\` brings it up to date."
fi
exit 0
