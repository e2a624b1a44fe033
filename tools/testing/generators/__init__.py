"""Generated programs: sketches, the modules built from them, random decisions, strategies."""
