"""Transformers of published shapes: an encoder, and a decoder that keeps its cache."""
