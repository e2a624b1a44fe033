"""What convert-linalg-to-nn makes of the operations of MLIR's own dialects."""
