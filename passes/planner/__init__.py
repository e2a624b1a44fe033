"""The planner: it searches how the work of every operator is cut over the tiles."""
