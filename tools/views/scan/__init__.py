"""abele scan: a picture of every vertex and every edge of a compiled program."""
