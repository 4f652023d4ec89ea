"""The HTTP surface: routes, access, bodies and their memory, content encodings, server-sent events, error replies."""
