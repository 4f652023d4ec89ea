"""`Record`: `typing.NamedTuple` to a type checker, and at run time the same tuples without importing `typing`.

`typing` costs a third of a bare interpreter's start, and start-up is most of what one small request costs. A module
that defines a record needs `from __future__ import annotations`: its annotations then stay text and name the fields.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:
    from collections import namedtuple

    class _RecordType(type):
        """Turns the body of a class into a named tuple with the annotated names as fields."""

        def __new__(kind, name, bases, body):  # noqa: B902
            names = body.pop("__annotations__", ())
            defaults = [body.pop(field) for field in names if field in body]
            fields = namedtuple(name, names, defaults=defaults, module=body["__module__"])
            return type(name, (fields,), {"__slots__": (), **body})

    Record = type.__new__(_RecordType, "Record", (), {})

__all__ = ["Record"]
