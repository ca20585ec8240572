"""What an agent is given before a task: memories chosen, phrased and fitted into a token budget."""
