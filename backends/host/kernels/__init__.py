"""The compiled kernels, one file per task. `tables.py` alone needs no numba."""
