"""Proofs that rewrite rules keep the meaning of the programs that they match."""
