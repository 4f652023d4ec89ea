"""Whose a request is, by its method and the bytes of its path; nothing is decoded or normalised to find out."""

from collections.abc import Container

from cg.gateway.events import Route

MESSAGES = b"/v1/messages"
COUNT_TOKENS = b"/v1/messages/count_tokens"

# The paths that other providers' clients call; counted apart, since such a client is pointed at the wrong place.
FOREIGN = (
    b"/v1/chat/",
    b"/v1/responses",
    b"/v1/embeddings",
    b"/v1/realtime",
    b"/v1/completions",
    b"/v1beta/",
    b"/v1alpha/",
    b"/openai/",
    b"/api/chat",
    b"/api/generate",
    b"/model/",  # Bedrock's invoke and converse
)


def route_of(method: str, path: bytes, gateway_paths: Container[bytes]) -> Route:
    """Which room answers. A path that only resembles one of ours, or of the sweep's, passes through as it is."""
    if path in gateway_paths:
        return Route.OWN
    if method == "POST" and path == MESSAGES:
        return Route.MESSAGES
    if method == "POST" and path == COUNT_TOKENS:
        return Route.COUNT_TOKENS
    return Route.FOREIGN if path.startswith(FOREIGN) else Route.OTHER
