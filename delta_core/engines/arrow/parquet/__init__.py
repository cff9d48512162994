"""Data files: Parquet read and written, on threads, in bounded memory."""
