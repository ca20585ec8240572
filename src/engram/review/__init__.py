"""What waits for a person: contradictions, candidates, memories about to be let go; and the way back."""
