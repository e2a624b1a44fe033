"""The edge: argv, files, printing."""
