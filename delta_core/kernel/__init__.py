"""The kernel: it finds the versions of a table, replays its log and commits new versions (README.md in this folder)."""
