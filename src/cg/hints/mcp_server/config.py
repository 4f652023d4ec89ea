"""The configuration: which servers, in the shape that MCP clients use, and which of their tools may be seen."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from cg.hints.refusal import Code, Refusal

MAX_CONFIG_BYTES = 1024 * 1024
_SERVER_NAME = re.compile(
    r"[ -.0-~]{1,64}"
)  # visible ASCII and spaces, without the slash that ends it in a tool's name


class ServerSpec(NamedTuple):
    """How one server is reached: by a command on its standard streams, or at a URL over streamable HTTP."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Permissions(NamedTuple):
    """Globs over `server/tool`. A name must match each list of `allow` (none: everything is allowed), and no `deny`."""

    allow: tuple[tuple[str, ...], ...] = ()
    deny: tuple[str, ...] = ()

    def permit(self, name: str) -> bool:
        """Whether the caller may find and call this tool. Case counts for `allow` and not for `deny`: doubt denies."""
        if any(fnmatchcase(name.lower(), glob.lower()) for glob in self.deny):
            return False
        return all(any(fnmatchcase(name, glob) for glob in globs) for globs in self.allow)

    def narrowed(self, allow: list[str], deny: list[str]) -> Permissions:
        """These and more: what a command line adds can only take away."""
        return Permissions((*self.allow, tuple(allow)) if allow else self.allow, (*self.deny, *deny))


class Config(NamedTuple):
    servers: tuple[ServerSpec, ...]
    permissions: Permissions


def _refuse(message: str, path: str = "") -> Refusal:
    return Refusal(Code.USAGE, f"--config: {message}", path)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _refuse(f"the key {ascii(key[:64])} stands twice in one object")
        found[key] = value
    return found


def _texts(value: Any, path: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise _refuse("must be a list of strings", path)
    return tuple(value)


def _text_pairs(value: Any, path: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise _refuse("must be an object of strings", path)
    return tuple(value.items())


def _server(name: str, entry: Any) -> ServerSpec:
    path = f"mcpServers.{ascii(name[:64])}"
    if not _SERVER_NAME.fullmatch(name):
        raise _refuse("a server's name has 1 to 64 visible ASCII characters, and no slash", path)
    if not isinstance(entry, dict):
        raise _refuse("must be an object", path)
    command, url, cwd = entry.get("command", ""), entry.get("url", ""), entry.get("cwd")
    if not isinstance(command, str) or not isinstance(url, str) or not (cwd is None or isinstance(cwd, str)):
        raise _refuse("command, url and cwd must be strings", path)
    if bool(command) == bool(url):
        raise _refuse("needs a command or a url, and not both", path)
    if entry.get("type") == "sse":
        raise _refuse("the transport sse is not supported; stdio and streamable HTTP are", path)
    return ServerSpec(
        name,
        command,
        _texts(entry.get("args", []), f"{path}.args"),
        _text_pairs(entry.get("env", {}), f"{path}.env"),
        cwd,
        url,
        _text_pairs(entry.get("headers", {}), f"{path}.headers"),
    )


def _permissions(entry: Any) -> Permissions:
    """`{"allow": [...], "deny": [...]}`; another key is refused, since a misspelt `deny` would permit."""
    if not isinstance(entry, dict) or set(entry) - {"allow", "deny"}:
        raise _refuse("must be an object with allow, deny or both", "tools")
    allow = (_texts(entry["allow"], "tools.allow"),) if "allow" in entry else ()
    return Permissions(allow, _texts(entry.get("deny", []), "tools.deny"))


def parse_config(body: bytes) -> Config:
    """The configuration in these bytes. Raises Refusal(USAGE) with the place; values, which may be secrets, stay unsaid.

    `mcpServers` is read, and our `tools`. Other keys, of a client whose file it is, are ignored; so are servers that are
    `disabled` there.
    """
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise _refuse("the file is no JSON in UTF-8") from None
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise _refuse('needs the shape {"mcpServers": {name: {"command", "args", "env"} or {"url"}}}')
    enabled = {
        name: entry
        for name, entry in servers.items()
        if not (isinstance(entry, dict) and entry.get("disabled") is True)
    }
    if not enabled:
        raise _refuse("names no server", "mcpServers")
    return Config(tuple(_server(name, entry) for name, entry in enabled.items()), _permissions(value.get("tools", {})))


def read_config(path: str) -> Config:
    """The configuration in this file; raises Refusal(USAGE)."""
    try:
        with open(path, "rb") as file:
            body = file.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as fault:
        raise _refuse(getattr(fault, "strerror", None) or "no such file") from None
    if len(body) > MAX_CONFIG_BYTES:
        raise _refuse(f"the file passes {MAX_CONFIG_BYTES} bytes")
    return parse_config(body)
