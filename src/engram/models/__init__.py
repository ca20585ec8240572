"""The small trained models that read language, and the features each of them looks at."""
