"""Mutation testing of the test kit: passes with one planted bug each, and the time to find it.

A bug that is not found shows a gap in the kit's generators or oracles. A `Mutant` is a pass with
one mistake: in its Python code (`python_mutants`), in its rules (`rule_mutants`), or in its output
(`result_mutants`). A trial runs check_pass on a mutant in a process of its own. A study runs all
trials of a pass. It reports the planted bugs, the found bugs, the time to find each, and the size
of the failing program.
"""
