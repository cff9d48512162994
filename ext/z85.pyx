"""Z85 text to bytes and back."""
