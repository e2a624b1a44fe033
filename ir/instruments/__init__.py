"""What may watch a pipeline run: dumps, timing, verification, reproducers."""
