"""The gates a memory passes before it is stored. `pipeline` runs them in order.

Shape is checked in `proposal`, secrets in `secrets`, injected instructions in `instructions`, quality in `quality`, duplicates,
updates and contradictions in `neighbourhood` and `comparison`, and trust in `trust`. `policies` assigns the type and the conflict key.
"""
