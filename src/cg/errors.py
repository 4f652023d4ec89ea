"""Base of the errors that cg raises on purpose; everything else that escapes is a fault of ours."""


class CgError(Exception):
    """An input or a state that cg refuses; the message names the value and the limit."""
