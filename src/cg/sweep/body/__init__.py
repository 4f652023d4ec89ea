"""A request body: read into a transcript, edited in place, and what a removal leaves there."""
