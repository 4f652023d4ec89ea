"""Where a removed output stands in a text, by the marker's published form."""

import re

MARKER = re.compile(r"<<cg:([0-9a-f]{16})>>")


def find_markers(text: str) -> list[str]:
    """The ids of the markers in a text, in order, each as often as it stands there."""
    return MARKER.findall(text)
