"""Bugs on purpose: passes with one mistake each, and how soon the kit finds them.

What the kit does not find is a hole in its generators or its oracles. A `Mutant` is a pass with one
mistake: in its Python (`python_mutants`), in its rules (`rule_mutants`), or in what it leaves
behind (`result_mutants`). A trial runs check_pass on one in a process of its own; a study is all
trials of some passes, and says what was planted, found, how soon, and how small the program became.
"""
