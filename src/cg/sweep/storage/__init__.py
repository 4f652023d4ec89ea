"""What the stores are made of: packing, last bodies, and the parts of each kind."""
