"""What the bytes of a model hold if it has external data."""

LOCATION = b"location"
"""The key of the entry that names a file of external data. A model without it has no such file."""
