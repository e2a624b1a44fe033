"""The rules that abele's own passes apply, and the Python functions that these rules call."""
