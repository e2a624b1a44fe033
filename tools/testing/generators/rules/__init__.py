"""Programs made from a rule: from its left side, and from near-misses of it."""
