"""Decoding labels from a small space."""
