"""The compiled Parquet reader under AddressSanitizer and UBSan: see ``python -m tests.fuzz.native``."""
