"""Compiled programs that are kept in files, so that equal ones are not compiled twice."""
