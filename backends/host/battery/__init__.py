"""Kernels prove themselves: sizes around their edges, computed by kernels and by NumPy."""
