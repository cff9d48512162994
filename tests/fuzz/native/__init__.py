"""The compiled Parquet reader under AddressSanitizer and UndefinedBehaviorSanitizer: see ``python -m tests.fuzz.native``."""
