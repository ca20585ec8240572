"""Sessions, feedback, and what use does to memories."""
