"""Products of sparse matrices, found and written without their zeros: see multiply-sparse."""
