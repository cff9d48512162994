"""Commits of Lance datasets: operations, the conflicts between them, and the manifests that they make."""
