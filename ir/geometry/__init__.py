"""Pure mathematics on integers: iteration spaces, access maps, grids, layouts, overlaps.

NumPy only; no op, no machine.
"""
