"""The formats that memories are read from and written to. The record inside is the same for all of them."""
