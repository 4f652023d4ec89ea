"""A replay as one HTML file."""
