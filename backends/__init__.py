"""The machine, and the meaning of each level."""
