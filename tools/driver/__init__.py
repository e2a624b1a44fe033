"""From a model or module to a compiled program that runs."""
