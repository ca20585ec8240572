"""Spec 3's memories: one TOML file each, below memory/feedback and memory/facts, and the two earlier flat layouts."""

from engram.dialects.feedback_toml.toml_files import (
    STATED_FIELDS,
    as_exported,
    is_feedback_toml,
    name_for,
    name_in,
    read_feedback_toml,
    read_toml,
    render_toml,
    why_left_out,
    write_feedback_toml,
)

__all__ = [
    "STATED_FIELDS",
    "as_exported",
    "is_feedback_toml",
    "name_for",
    "name_in",
    "read_feedback_toml",
    "read_toml",
    "render_toml",
    "why_left_out",
    "write_feedback_toml",
]
