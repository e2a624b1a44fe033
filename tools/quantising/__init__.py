"""Post-training quantisation: from a float model and inputs to a model with 8-bit products."""
