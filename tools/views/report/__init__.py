"""The report on a compiled program: its operations, and the use of memory and cycles."""
