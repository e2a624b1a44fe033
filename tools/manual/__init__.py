"""The reference: one page per dialect, and pages of passes, rules, codelets, targets and commands.

All text comes from definitions. `make reference` writes the pages to docs/reference.
"""
