"""The one seam to a language model: prompts as files, answers as records, spending counted and capped.

Nothing here is needed: every step of Engram has a way without a model, and a model can only add to it.
"""
