"""The rules that abele applies itself, and what they may call."""
