"""Training on real data that installed packages hold, and what comes of it."""
