"""How every operator's work is cut over the tiles: the search, its prices, and what follows."""
