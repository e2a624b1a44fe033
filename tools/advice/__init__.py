"""What fills the memory of a tile, and changes that free some of it."""
