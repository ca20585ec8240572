"""What capture and harvest propose, how fast, and what they wrongly admit."""
