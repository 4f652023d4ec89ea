"""What may stand for an upstream."""

from urllib.parse import SplitResult, urlsplit

from cg.errors import CgError

BASE_URL = "ANTHROPIC_BASE_URL"  # what clients are pointed to an upstream with


def checked(url: str) -> SplitResult:
    """The parts of a base URL. Raises CgError for what is none; what it holds is not repeated, it may be a secret."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise CgError("upstream is not a URL") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CgError("upstream must be an http or https URL with a host name")
    if parts.username is not None or parts.query or parts.fragment:
        raise CgError("upstream must be without user name, query and fragment")
    if not parts.path.isascii() or any(character <= " " for character in url):
        raise CgError("upstream must be written in visible ASCII but for its host name")
    return parts


def place_of(url: str) -> str:
    """Scheme, host and port of a URL: a user's name, a password, a path or a query in it are nobody's to see."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    host = parts.hostname or ""
    return f"{parts.scheme}://[{host}]{port}" if ":" in host else f"{parts.scheme}://{host}{port}"
