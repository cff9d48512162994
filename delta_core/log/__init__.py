"""The transaction log: finding versions, reading and writing their files."""
