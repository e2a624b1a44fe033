"""Automatic recomputation: what to compute again instead of keeping it, under a memory bound."""
