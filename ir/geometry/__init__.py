"""Integer mathematics: iteration spaces, access maps, grids, layouts and overlaps.

Uses NumPy only. Nothing here knows an operation or a machine.
"""
