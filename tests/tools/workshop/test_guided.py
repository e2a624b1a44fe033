"""The measurement of guidance."""

from abele.tools.workshop import guided


def test_it_counts_programs_of_both_checks(monkeypatch):
    monkeypatch.setattr(guided, "PATTERNS", guided.PATTERNS[:1])
    ((name, seed, without, with_),) = guided._turns(6, 1)
    assert (name, seed) == ("gathers of slices", 0)
    assert without.examples == with_.examples == 6
    assert with_.cpu_seconds > 0
