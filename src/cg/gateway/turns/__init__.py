"""One request through the sweep in a worker thread, within its budget."""
