"""The engine that runs the machine at the speed of the host: compiled calls, equal to the bit."""
