"""Connections to the API: what a reply is, the pool, and how a connection is opened."""
