"""Rows of a table of any format for other libraries: PyArrow datasets, Polars frames, dictionary codes."""
