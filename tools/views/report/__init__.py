"""The report: what a compiled program does, and where its memory and cycles go."""
