"""How knowledge comes in: proposed, judged by the gates, and only then stored."""
