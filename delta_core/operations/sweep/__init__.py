"""Files that nothing references are found and deleted, of tables of any format: mark by names and age, then sweep."""
