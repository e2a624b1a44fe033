"""Instruments that watch a pipeline run: dumps, timing, verification, reproducers."""
