"""Reads the archives that torch.export saves, with zipfile, JSON and NumPy alone."""
