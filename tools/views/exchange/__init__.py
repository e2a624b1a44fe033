"""Views of exchanges: tables of moves, lists of a tile's messages, and a picture of the lanes."""
