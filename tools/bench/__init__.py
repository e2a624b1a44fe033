"""Programs that measure abele: time, memory, plans, predictions and the testing kit."""
