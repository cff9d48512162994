"""Reports on a table of any format: sizes, versions, order and upkeep, as one page or ten lines."""
