"""Programs of stablehlo on complex numbers as programs on their real and imaginary parts."""
