"""What the driver is made of: effects carried out against a store, and what happens between requests."""
