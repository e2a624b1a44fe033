"""The dialects: the operations, types and attributes of each level."""
