"""The one seam to a language model: prompts as files, answers as records, spending counted and capped.

It is optional: every step of Engram works without a model, and a model can only add to it.
"""
