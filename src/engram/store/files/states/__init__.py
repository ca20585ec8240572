"""Small files of a store: sessions, tasks, jobs and named states."""
