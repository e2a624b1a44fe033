"""Tools that look inside programs: bisection, checked runs, explanations, passes on text."""
