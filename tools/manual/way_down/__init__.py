"""The picture of one convolution at all four levels, at the head of docs/design.md."""
