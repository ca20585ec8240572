"""The interface to a language model: prompts as files, answers as records, token use counted and capped.

It is optional: every step of Engram works without a model, and a model can only improve it.
"""
