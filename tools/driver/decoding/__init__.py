"""Decoders of language models on the device: prompts, sampling, and the loop over tokens."""
