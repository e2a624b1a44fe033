"""What the planner chose for each operator, why, and the alternatives."""
