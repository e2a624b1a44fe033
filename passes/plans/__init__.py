"""The meaning of a plan: the cut operator, its steps, and the layouts of its tensors."""
