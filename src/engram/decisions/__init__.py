"""Changes to memories: each is a `Change`, and `execute_change` carries out every one of them.

`change` describes a change, `execution` carries it out, and `locked` is what a plan reads and writes under the lock. The rules are
functions of memories: `versions` (what replaces what), `conflicts` (what waits for what), `authority` (who may change what),
`approval`, `resolution`, and `admission`, which judges what an agent writes.
"""
