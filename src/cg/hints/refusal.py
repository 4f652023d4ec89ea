"""The closed set of reasons for which a request is refused, and the exception that carries one."""

from enum import StrEnum

from cg.errors import CgError

_SHOWN_CHARACTERS = 64  # of a field name that the caller chose; enough to find it, too short to flood a log


class Code(StrEnum):
    """Why a request was refused; callers may branch on these values, docs/hints.md says what each means."""

    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    LONE_SURROGATE = "lone_surrogate"
    DUPLICATE_KEY = "duplicate_key"
    UNKNOWN_FIELD = "unknown_field"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    NO_DOCUMENTS = "no_documents"
    TOO_MANY_DOCUMENTS = "too_many_documents"
    TEXT_TOO_LARGE = "text_too_large"
    QUERY_TOO_LARGE = "query_too_large"
    REQUEST_TOO_LARGE = "request_too_large"
    REPEATED_ID = "repeated_id"
    REPEATED_HINT = "repeated_hint"
    UNKNOWN_HINT = "unknown_hint"
    QUERY_MISMATCH = "query_mismatch"
    SNAPSHOT_MISMATCH = "snapshot_mismatch"
    SNAPSHOT_CONFLICT = "snapshot_conflict"
    USAGE = "usage"
    INTERNAL = "internal"


class Refusal(CgError):
    """A request that is not answered; `path` is the place in it (`documents[3].text`), empty for the whole."""

    def __init__(self, code: Code, message: str, path: str = "") -> None:
        super().__init__(code, message, path)
        self.code = code
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" (at {self.path})" if self.path else "")

    def to_dict(self) -> dict[str, dict[str, str]]:
        """The object that is printed: `{"error": {"code", "message", "path"}}`."""
        return {"error": {"code": self.code.value, "message": self.message, "path": self.path}}


def field_path(parent: str, name: str) -> str:
    """The path of field `name` of the object at `parent`; a name that is no plain word is quoted, a long one is cut."""
    shown = name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "..."
    if not (name.isascii() and name.isidentifier()):
        return f"{parent}[{ascii(shown)}]"
    return f"{parent}.{shown}" if parent else shown
