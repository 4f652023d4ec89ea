"""What is learnt of a user's waits, and the choices that are made by it."""
