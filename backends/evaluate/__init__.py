"""Executes modules of partition, tile and exchange."""
