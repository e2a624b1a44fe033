"""What fills the memory of a tile, and which changes would make room."""
