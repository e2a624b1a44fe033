"""The search for failures: checks, blame, shrinking, and records of what failed."""
