"""What outlives a request: the opened store, the secret of this installation, the clock, housekeeping."""
