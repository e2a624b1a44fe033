"""Syntax highlighting of IR and rules: for terminals, documents and editors."""
