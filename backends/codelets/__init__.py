"""Codelets: the numerics of vertices, over all tiles at once, and their prices."""
