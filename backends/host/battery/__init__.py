"""Batteries of tests that prove kernels: cases around critical sizes, computed by kernels and by
NumPy.
"""
