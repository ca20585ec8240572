"""Memory policies: the type of a statement, whether it is critical, and which older one it replaces.

A `MemoryPolicy` has two tables of patterns. The presets `default`, `legal` and `coding_agent` are `.toml` files in this package;
others are defined in code, or in `config.toml` under `[policies.NAME]`.
"""

from engram.gates.policies.policy import (
    PRESETS,
    MemoryPolicy,
    SlotRule,
    TypeRule,
    chosen_policy,
    custom_policies,
    load_policy,
    policy_named,
    policy_problems,
)

__all__ = [
    "PRESETS",
    "MemoryPolicy",
    "SlotRule",
    "TypeRule",
    "chosen_policy",
    "custom_policies",
    "load_policy",
    "policy_named",
    "policy_problems",
]
