"""Changes to memories: each is a `Change`, and `execute_change` carries out every one of them.

`execution` has `Change`, which describes a change, `execute_change`, which carries it out, and `LockedMemories`, which a plan reads and
writes under the lock. The rules are functions of memories: `versions` (what replaces what, and what waits for what), `authority` (who
may change what), `approval` (who may approve what, and what becomes of contradictions), and `admission`, which judges what an agent writes.
"""
