"""What a vertex runs: numerics over all tiles at once."""
