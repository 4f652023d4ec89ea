"""Docstrings as the site prints them: prose with code in backticks, and signatures of compiled code from its stubs."""

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SPECIAL = re.compile(r"([*|_\\])")
FIRST_LINE = re.compile(r"[\w.]+\(.*\)( ->.*)?\Z")  # what the compiler puts in front of a docstring


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-process-signature", from_stub)
    return {"parallel_read_safe": True}


def plain(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Characters that mean something to the renderer mean nothing in a docstring, outside of backticks."""
    if lines and FIRST_LINE.match(lines[0]):
        del lines[0]
    in_span = False  # a span may go on in the next line
    for n, line in enumerate(lines):
        pieces = line.split("`")
        out = []
        for k, piece in enumerate(pieces):
            out.append(piece if in_span else SPECIAL.sub(r"\\\1", piece))
            if k < len(pieces) - 1:
                in_span = not in_span
        lines[n] = "`".join(out)
    if what == "class" and (known := stated(thing)) is not None:
        lines[:0] = [f"`{thing.__name__}{known[0]}`", ""]


def from_stub(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> Any:
    """(arguments, result) of a compiled function, as its stub states them; None: as it is.

    Where the interpreter knows no signature at all, Sphinx takes none from here either: see `plain`.
    """
    return None if signature is None else stated(thing)


def stated(thing: Any) -> tuple[str, str | None] | None:
    """The signature in the stub of a compiled class or function."""
    module = getattr(thing, "__module__", None) or getattr(getattr(thing, "__objclass__", None), "__module__", "")
    return stub(str(module)).get(getattr(thing, "__qualname__", "")) if str(module).startswith("cg._") else None


@cache
def stub(module: str) -> dict[str, tuple[str, str | None]]:
    """Signatures by qualified name, a class under that of its `__new__` or `__init__`."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / f"{module.rpartition('.')[2]}.pyi"
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = _signature(node, is_method=False)
        for inner in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(inner, ast.FunctionDef):
                arguments, result = _signature(
                    inner, is_method="staticmethod" not in map(ast.unparse, inner.decorator_list)
                )
                found[f"{node.name}.{inner.name}"] = (arguments, result)
                if inner.name in ("__new__", "__init__"):
                    found[node.name] = (arguments, None)
    return found


def _signature(node: ast.FunctionDef, *, is_method: bool) -> tuple[str, str | None]:
    arguments = node.args
    if is_method:
        kept = (arguments.posonlyargs or arguments.args)[1:]
        if arguments.posonlyargs:
            arguments.posonlyargs = kept
        else:
            arguments.args = kept
    return f"({ast.unparse(arguments)})", ast.unparse(node.returns) if node.returns else None
