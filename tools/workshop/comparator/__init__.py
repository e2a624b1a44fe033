"""The search for plans of matrix products against that of T10, under T10's charges."""
