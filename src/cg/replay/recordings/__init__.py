"""Recorded sessions: finding files, reading each format, and what hindsight says of an output."""
