"""The planner's choice for each operator, the reason, and the alternatives."""
