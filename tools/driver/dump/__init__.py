"""Dumps of a pipeline: a file after each pass, and a page that shows what every pass did."""
