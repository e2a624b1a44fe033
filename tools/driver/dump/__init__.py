"""Pages about programs, each one file that needs no network."""
