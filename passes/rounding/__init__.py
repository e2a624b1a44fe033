"""What stochastic rounding reads: the place of an element, and random words of the step."""
