"""Damaged and absurd inputs: generating them, giving them to commands, and judging what happens.

`abele fuzz --hostile` runs them. Each file here makes one kind of input; `kinds` lists them.
"""
