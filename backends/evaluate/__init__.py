"""Run a module of any level below the reference."""
