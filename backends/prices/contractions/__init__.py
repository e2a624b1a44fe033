"""What a contraction costs on one tile, by each method of computing it."""
