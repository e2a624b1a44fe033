"""How one program becomes another."""
