"""Mutation testing of the test kit: passes with one planted bug each, and how soon it is found.

A bug that is not found shows a gap in the kit's generators or oracles. A `Mutant` is a pass with
one mistake: in its Python (`python_mutants`), in its rules (`rule_mutants`), or in its output
(`result_mutants`). A trial runs check_pass on a mutant in a process of its own. A study runs all
trials of a pass. It reports what was planted, what was found, how soon, and on how small a program.
"""
