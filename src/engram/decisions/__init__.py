"""Changes to memories: each one is a `Change`, which `execute_change` carries out.

`execution` defines `Change`, `execute_change` and `LockedMemories`, through which a plan reads and writes under the
lock. The rules are functions of memories: `versions` (which memory replaces or blocks which), `authority` (who may
change a memory), `approval` (who may approve one, and how contradictions are settled) and `admission` (checks on what
an agent writes).
"""
