"""Which conversation a request belongs to, its branches, and the phase of a cached prefix."""
