"""Generates programs: sketches, modules built from sketches, random decisions, strategies."""
