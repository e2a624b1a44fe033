"""The health of the numbers that a program computes: how close they are to the limits of types."""
