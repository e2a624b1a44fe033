"""How each operation of nn becomes operations of partition."""
