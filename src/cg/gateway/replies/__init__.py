"""What a reply of the API says: its blocks and its usage."""
