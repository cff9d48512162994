"""Writing rows: columns in the types of a dataset, data files of bounded size, and new datasets."""
