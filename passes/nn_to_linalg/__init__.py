"""What convert-nn-to-linalg makes of operations of nn."""
