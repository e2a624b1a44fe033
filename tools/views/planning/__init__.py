"""What the planner decided for each operator, why, and what else there was."""
