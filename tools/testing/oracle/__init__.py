"""Decides whether results are correct: expected results with error bounds, and relations."""
