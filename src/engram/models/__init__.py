"""The small trained models that classify language, and the features each of them uses."""
