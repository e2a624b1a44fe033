"""What every level shares and no dialect owns."""
