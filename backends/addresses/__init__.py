"""A static proof that a program at exchange never mixes up the bytes of its variables."""
