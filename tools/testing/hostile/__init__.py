"""Generates damaged and absurd inputs, gives them to commands, and judges the outcomes.

`abele fuzz --hostile` runs them. Each file here makes one kind of input; `kinds` lists them.
"""
