"""What a plan means: the operator it cuts, its steps, and the layouts of its tensors."""
