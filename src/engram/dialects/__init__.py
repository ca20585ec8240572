"""The formats memories are read from and written to. One record inside, dialects at the edge."""
