"""Engines: what does input and output for the core."""
