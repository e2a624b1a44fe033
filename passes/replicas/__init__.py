"""Replicas: the batch cut across chips, and sums over it that chips merge."""
