"""Bisection: find the first pass, rewrite and value that make a program wrong."""
