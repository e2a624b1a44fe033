"""What replaces each operation of stablehlo by operations of nn, one file for a family."""
