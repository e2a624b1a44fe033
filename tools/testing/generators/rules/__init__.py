"""Generates programs for testing a rule: some match its left side, some nearly match."""
