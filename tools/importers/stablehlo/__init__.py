"""Reads programs of StableHLO, which JAX and others write."""
