"""The passes: each transforms a program, or writes a decision on it."""
