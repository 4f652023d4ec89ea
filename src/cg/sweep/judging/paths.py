"""Which files a call names, and when two spellings are one file.

Paths are compared as text: nothing is looked up on a disk, which may be another machine's. Where a spelling is in doubt
two paths are one: an output then stays longer than it had to. Case, Unicode composition, `./`, `..`, doubled and backward
slashes, a drive, a home directory and a position (`a.py:12`) do not count.
"""

import json
import posixpath
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from itertools import product
from typing import Any
from urllib.parse import unquote

from cg.sweep.body.transcript import strings

# The last word of an argument's name: `file_path`, `filePath`, `target_file`, `paths`, `TargetNotebook` ...
_ARGUMENTS = frozenset(
    [
        "path",
        "paths",
        "file",
        "files",
        "filename",
        "filenames",
        "filepath",
        "filepaths",
        "notebook",
        "uri",
        "dir",
        "directory",
        "folder",
        "source",
        "destination",
    ]
)
_COMMANDS = ("command", "cmd", "script")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_DIFFED = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\n]+)", re.MULTILINE)
_LONGEST = 4096  # characters of a path
_LONGEST_GLOB = 256  # the time to read one is quadratic in its brackets
_PLACE = re.compile(r"\A(?://[?.]/)?/?[a-z]:|\A/mnt/[a-z](?=/)")  # a drive
_HOME = re.compile(r"\A(?:~[^/]*|\$\{?\w+\}?|%\w+%)(?:/|\Z)")
_POSITION = re.compile(r"(?<=\w):\d+(?:[-:]\d+)*\Z")
_WILD = re.compile(r"[*?\[]")
_MOST_CHOICES = 6  # of a glob, each of which doubles its readings


def named_paths(arguments: Any) -> tuple[str, ...]:
    """The paths that a call's decoded arguments name, in normal form: by the argument's name at any depth, or in a patch."""
    found: dict[str, None] = {}
    waiting: list[tuple[bool, Any]] = [(False, arguments)]
    while waiting:
        is_path, here = waiting.pop()
        if isinstance(here, dict):
            waiting.extend((_is_path_argument(name), value) for name, value in reversed(here.items()))
        elif isinstance(here, list):
            waiting.extend((is_path, value) for value in reversed(here))
        elif isinstance(here, str):
            found.update(dict.fromkeys(normal(path) for path in _paths_in(here, is_path)))
    return tuple(path for path in found if path)


def _paths_in(text: str, is_path: bool) -> Iterator[str]:
    if is_path:
        listed = strings(_decoded(text)) if text.startswith('["') else [text]  # some lists are written as text
        yield from (path for path in listed if len(path) <= _LONGEST)
    if "*** " in text:
        yield from _PATCHED.findall(text)
    if "\n+++ " in text:
        yield from _DIFFED.findall(text)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@lru_cache(maxsize=1024)
def _is_path_argument(name: str) -> bool:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return bool(words) and (words[-1].lower() in _ARGUMENTS or name.lower().endswith(("path", "paths")))


def command_paths(arguments: Any) -> tuple[str, ...]:
    """The words of a call's shell command, in normal form: any of them may be a path."""
    given = [arguments[name] for name in _COMMANDS if name in arguments] if isinstance(arguments, dict) else []
    words: dict[str, None] = {}
    for command in strings(given):
        try:
            quoted = shlex.split(command[:_LONGEST])  # slow; the rest of it is split below
        except ValueError:
            quoted = []
        for word in (*quoted, *re.split(r"[\s'\"`;|&<>()]+", command)):
            for part in (word, *re.split("[=:,]", word)):
                words[normal(part[:_LONGEST])] = None
    return tuple(word for word in words if word)


def composed(text: str) -> str:
    """A text with the letters of normal paths."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


@lru_cache(maxsize=4096)
def normal(path: str) -> str:
    """A path's normal form: rooted if it begins with `/`; empty for the working directory, or the root."""
    path = composed(path.strip()).replace("\\", "/")
    if path.startswith("file:"):
        path = unquote(re.sub(r"\Afile:(?://[^/]*)?", "", path))
    path = _POSITION.sub("", _HOME.sub("", _PLACE.sub("", path)))
    path = posixpath.normpath(re.sub("/+", "/", path)) if path else ""
    return "" if path in (".", "..", "/") else re.sub(r"\A(?:\.\./)+(?:\.\.\Z)?", "", path)


def is_same_file(one: str, other: str) -> bool:
    """Whether two normal paths may be one file: equal, or one of them ends in the other, which is relative."""
    short, long = sorted((one, other), key=len)
    return bool(short) and (short == long or (short[0] != "/" and long.endswith("/" + short)))


def is_under(path: str, glob: str) -> bool:
    """Whether a normal path is the named one, stands in that folder, or fits the glob; in any folder if that is relative.

    `*` crosses folders, `**/` may stand for none, and what stands in brackets is a name or a class.
    """
    if any(fits(path) for fits in _readings(glob, path[:1] == "/")):
        return True
    if len(path) > _LONGEST_GLOB or not _WILD.search(path):
        return False
    name = normal(glob).lstrip("/")  # `cat src/*.py` names src/a.py
    return fnmatchcase("/" + name, "*/" + "/".join(path.lstrip("/").split("/")[-1 - name.count("/") :]))


@lru_cache(maxsize=1024)
def _readings(glob: str, is_rooted: bool) -> tuple[Callable[[str], Any], ...]:
    """Of a glob, for paths that are rooted or not: whether a path fits one of the ways to read it."""
    name = re.sub(r"(?:/\*\*)+\Z", "", normal(glob))
    if not name:  # all of it
        return (re.compile("" if glob.strip() else r"(?!)").match,)
    wholes = [name] if name[0] == "/" else ["*/" + name, name]
    if name[0] == "/" and not is_rooted:  # a relative path may stand in the last of these folders
        steps = name[1:].split("/")
        wholes = ["/".join(steps[i:]) for i in range(len(steps)) if not _WILD.match(steps[i])]
    return tuple(
        re.compile(translate(one + end)).match for whole in wholes for one in _variants(whole) for end in ("", "/*")
    )


def _variants(glob: str) -> Iterator[str]:
    """A glob with each `**/` as some folders or none, and each bracket as a letter or the start of a class."""
    pieces = re.split(r"(\*\*/|\[)", glob)
    choices = {"**/": ("*/", ""), "[": ("[[]", "[")}
    if len(pieces) // 2 > _MOST_CHOICES:
        for way in (0, 1):
            yield "".join(choices[piece][way] if piece in choices else piece for piece in pieces)
        return
    for chosen in product(*(choices.get(piece, (piece,)) for piece in pieces)):
        yield "".join(chosen)


def names_file(text: str, path: str) -> bool:
    """Whether a text, casefolded and composed, holds a normal path's last part as a word: people name a file by that."""
    name = path.rpartition("/")[2]
    return re.search(r"\w", name) is not None and re.search(rf"(?<![\w.-]){re.escape(name)}(?!\w)", text) is not None
