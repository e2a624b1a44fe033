"""Stages of a network on chips of their own."""
