"""Reverse differentiation at nn: what each operation passes back, and the walk from the loss."""
