"""Training on real data from installed packages, and its results."""
