"""Clocks: when each chip of a machine is where in a program, and what it waits for."""
