"""Finding again: candidates from the store, fused, weighed, spread over the graph, and phrased for a prompt."""
