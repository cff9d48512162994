"""Damaged data files and manifests of Lance: rows or one typed error, in bounded memory."""
