"""The secrets gate: finding credentials and identifying numbers in a text, and refusing or redacting them."""
