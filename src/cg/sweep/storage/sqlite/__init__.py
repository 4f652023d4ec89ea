"""Parts of the store in a file."""
