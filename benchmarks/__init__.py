"""Benchmarks: tables made on the spot, cases run in fresh processes side by side with peers, and their report."""
