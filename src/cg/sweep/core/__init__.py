"""One request through the sweep: what is due, removed, asked and brought back. It does no I/O."""
