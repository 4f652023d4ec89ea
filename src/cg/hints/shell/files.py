"""A request made of a query and files: a document a file, or a document a line of JSON."""

from __future__ import annotations

import json
import os

from cg.hints.catalog import Document
from cg.hints.limits import MAX_DOCUMENTS, MAX_QUERY_BYTES, MAX_TEXT_BYTES
from cg.hints.refusal import Code, Refusal
from cg.hints.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, BinaryIO

    Stdin = Callable[[], BinaryIO]

LINES = (".jsonl", ".ndjson")  # names of files that hold a document a line
_FIELDS = {"id": ["id"], "name": ["name"], "text": ["text"]}


def read_fields(spec: str | None) -> dict[str, list[str]]:
    """Which fields of a line make id, name and text: `id=slug,text=title+body`; what is not named keeps its own name."""
    fields = dict(_FIELDS)
    for part in spec.split(",") if spec is not None else ():
        ours, equals, theirs = part.partition("=")
        names = theirs.split("+")
        if ours not in fields or not equals or not all(names):
            raise Refusal(Code.USAGE, f"--fields: {part!r} is not of the form id=FIELD, name=FIELD or text=FIELD+FIELD")
        fields[ours] = names
    return fields


def request_of_files(query: str, names: list[str], spec: str | None, limit: int | None, stdin: Stdin) -> Request:
    """The request that asks `query` of the documents in these files; without names, of the lines on standard input.

    Raises Refusal for a file that cannot be read and at the limits of a request; its path names the document.
    """
    try:
        size_bytes = len(query.encode("utf-8"))
    except UnicodeEncodeError:
        raise Refusal(Code.INVALID_UTF8, "the query is not valid UTF-8", "--query") from None
    if size_bytes > MAX_QUERY_BYTES:
        message = f"the query has {size_bytes} bytes of UTF-8, the limit is {MAX_QUERY_BYTES}"
        raise Refusal(Code.QUERY_TOO_LARGE, message, "--query")
    documents = _within_limits(_documents(names or ["-"], read_fields(spec), stdin))
    return Request("", query, documents, None, limit)


def _within_limits(found: Iterable[tuple[str, Document]]) -> tuple[Document, ...]:
    documents: list[Document] = []
    place_of: dict[str, str] = {}
    text_bytes = 0
    for place, document in found:
        if len(documents) == MAX_DOCUMENTS:
            raise Refusal(Code.TOO_MANY_DOCUMENTS, f"there are more than {MAX_DOCUMENTS} documents", place)
        earlier = place_of.setdefault(document.id, place)
        if earlier is not place:
            raise Refusal(Code.REPEATED_ID, f"{earlier} has the same id", place)
        text_bytes += len(document.text.encode("utf-8", "replace")) + len(document.name.encode("utf-8", "replace"))
        if text_bytes > MAX_TEXT_BYTES:
            raise Refusal(Code.TEXT_TOO_LARGE, f"the texts so far pass {MAX_TEXT_BYTES} bytes of UTF-8", place)
        documents.append(document)
    if not documents:
        raise Refusal(Code.NO_DOCUMENTS, "there is no document to order")
    return tuple(documents)


def _documents(names: list[str], fields: dict[str, list[str]], stdin: Stdin) -> Iterator[tuple[str, Document]]:
    """(where it stands, document) of every document."""
    for name in names:
        shown = os.fsencode(name).decode("utf-8", "replace")
        try:
            if name == "-":
                yield from _lines("-", stdin(), fields)
            elif name.lower().endswith(LINES):
                with open(name, "rb") as stream:
                    yield from _lines(shown, stream, fields)
            else:
                with open(name, "rb") as stream:
                    content = stream.read(MAX_TEXT_BYTES + 1)
                yield shown, Document(shown, content.decode("utf-8", "replace"), shown)
        except OSError as fault:
            raise Refusal(Code.USAGE, f"cannot be read: {fault.strerror or type(fault).__name__}", shown) from None


def _lines(name: str, stream: BinaryIO, fields: dict[str, list[str]]) -> Iterator[tuple[str, Document]]:
    """The documents of a file with one JSON object a line; empty lines are passed over."""
    number = 0
    while line := stream.readline(2 * MAX_TEXT_BYTES + 1):
        number += 1
        place = f"{name}:{number}"
        if len(line) > 2 * MAX_TEXT_BYTES:
            raise Refusal(Code.TEXT_TOO_LARGE, "the line is too long for a document", place)
        if line.strip():
            yield place, _document(line, place, fields)


def _document(line: bytes, place: str, fields: dict[str, list[str]]) -> Document:
    try:
        value = json.loads(line)
    except UnicodeDecodeError as fault:
        raise Refusal(Code.INVALID_UTF8, f"not valid UTF-8: {fault.reason}", place) from None
    except (ValueError, RecursionError):
        raise Refusal(Code.INVALID_JSON, "the line is not JSON", place) from None
    if not isinstance(value, dict):
        raise Refusal(Code.WRONG_TYPE, "a line has to be an object", place)
    for ours in ("id", "text"):
        if not any(name in value for name in fields[ours]):
            known = ", ".join(sorted(value)[:8])
            message = f"no field {' or '.join(fields[ours])}; there are: {known[:200]}. --fields says which to take"
            raise Refusal(Code.MISSING_FIELD, message, place)
    texts = {ours: "\n".join(_text(value.get(name), place) for name in theirs) for ours, theirs in fields.items()}
    return Document(texts["id"], texts["text"], texts["name"])


def _text(value: Any, place: str) -> str:
    """A field as text: what is no string is written as JSON. Half a surrogate pair is refused, as in a request."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(Code.LONE_SURROGATE, "half a surrogate pair is not text", place) from None
    return text
