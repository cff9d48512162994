"""How DataFrames become data files and a commit."""
