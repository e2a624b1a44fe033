"""The reference: pages of every dialect, pass, rule, codelet, target and command, made from what
their definitions say. `make reference` writes them to docs/reference."""
