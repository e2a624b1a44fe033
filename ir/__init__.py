"""The parts of the compiler that all levels share and that depend on no dialect."""
