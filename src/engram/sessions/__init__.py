"""Sessions, their summaries and feedback, tasks, and background jobs."""
