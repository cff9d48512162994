"""Java classes for Spark's driver, one a file, and how they get there."""
