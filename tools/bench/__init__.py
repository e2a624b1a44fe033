"""Networks to measure on."""
