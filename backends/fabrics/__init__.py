"""What carries words between tiles, and what an exchange over it costs."""
