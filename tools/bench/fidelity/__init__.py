"""Predictions of measurements on real chips: how far abele's own prices are from them."""
