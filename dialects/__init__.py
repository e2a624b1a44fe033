"""What can be said at each level."""
