"""Reverse differentiation at nn: the rule of each operation, and the walk back from the loss."""
