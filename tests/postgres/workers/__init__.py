"""Programs the tests of the server run as processes of their own, and what they are checked with."""
