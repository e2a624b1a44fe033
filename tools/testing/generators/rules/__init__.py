"""Programs generated for a rule: some match its left side, some nearly do."""
