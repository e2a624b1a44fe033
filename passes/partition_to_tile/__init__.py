"""How each operation of partition becomes operations of tile."""
