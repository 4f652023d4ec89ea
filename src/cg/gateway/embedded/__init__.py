"""The sweep inside a program: an HTTP transport for the SDK, on threads and on an event loop."""
