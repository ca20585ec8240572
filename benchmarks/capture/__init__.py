"""What capture and harvest propose, how fast, and what they let through."""
