"""Sweeps: one row of figures for each of many models, targets and options."""
