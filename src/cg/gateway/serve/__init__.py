"""The server process: connections, start, signals, a gateway in a thread."""
