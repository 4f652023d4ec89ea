"""The rule `quiet` by its letter: every question is put to the whole list of messages again.

Lines, identifiers and uses are those of the labels that hindsight gives (docs/studies); they are found here by regular
expressions. Nothing is carried from one message to the next.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

NUMBERED = re.compile(r"^\s*\d+\s*(?:\u2192|\t|:|\|)")
WORDS = re.compile(r"[A-Za-z0-9_$@][A-Za-z0-9_$@.\-]*")
SHAPES = re.compile(
    r"[a-z][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]|[A-Za-z0-9]\.[A-Za-z]|[A-Za-z].*[0-9]|[0-9].*[A-Za-z]|^[0-9]{6,}$"
)
FILE_TOOLS = ("read", "edit", "write", "view", "replace", "create", "patch", "notebook", "insert", "append")


def line_items(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        bare = NUMBERED.sub("", line, count=1).strip()
        if len(bare) >= 24 and len(re.findall(r"[A-Za-z0-9_]+", bare)) >= 2:
            yield bare[:400]


def name_items(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        for word in WORDS.findall(line) if len(line) < 20_000 else []:
            bare = word.strip(".-")
            if len(bare) >= 6 and SHAPES.search(bare):
                yield bare


def n_dark(text: str) -> int:
    return sum(byte > 32 for byte in text.encode("utf-8", "surrogatepass"))


@cache
def rest_of(text: str) -> tuple[float, frozenset[str]]:
    """The share of a text that its items hold, and its lines that they do not hold whole."""
    total = known = 0
    rest = set()
    for line in text.split("\n"):
        bare = NUMBERED.sub("", line, count=1).strip()
        held = max([n_dark(whole) for whole in line_items(line)] + [sum(len(name) for name in name_items(line))])
        total += n_dark(bare)
        known += min(held, n_dark(bare))
        if held < n_dark(bare):
            rest.add(bare)
    return known / total if total else 1.0, frozenset(rest)


@cache
def items_of(text: str) -> frozenset[tuple[str, str]]:
    return frozenset([("line", line) for line in line_items(text)] + [("name", name) for name in name_items(text)])


def all_items(texts: list[str]) -> set[tuple[str, str]]:
    return set().union(*(items_of(text) for text in texts))


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for one in inner for text in strings(one)]


def may_be_one(path: str, other: str) -> bool:
    """Equal, or one ends in the other, which is relative."""
    return path == other or any(
        not short.startswith("/") and long.split("/")[-len(short.split("/")) :] == short.split("/")
        for short, long in ((path, other), (other, path))
    )


def is_by_client(text: str) -> bool:
    tags = r"<(system-reminder|local-command-[a-z]+|command-[a-z]+|task-notification|environment_[a-z]+)>.*?</\1>"
    return "<" in text and not re.sub(tags, "", text, flags=re.DOTALL).strip()


@dataclass
class Moment:
    """One output, one user text, or one answer."""

    kind: str
    items: set[tuple[str, str]]
    texts: list[str]
    answers: int  # that were there before it
    id: tuple[str, int] | None = None  # of an output: its call, and which of the result's texts
    call: dict[str, Any] | None = None  # that made it
    is_error: bool = False
    calls: tuple[dict[str, Any], ...] = ()  # of an answer
    role: str = "user"


def texts_of(content: Any) -> list[tuple[int, str]]:
    """(block, text) of a message's or a result's content."""
    if isinstance(content, str):
        return [(0, content)]
    return [(i, block["text"]) for i, block in enumerate(content) if block.get("type") == "text"]


def blocks_of(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message["content"]
    return [] if isinstance(content, str) else [block for block in content if block.get("type") == kind]


def moments_of(messages: list[dict[str, Any]]) -> list[Moment]:
    found: list[Moment] = []
    calls: dict[str, dict[str, Any]] = {}
    answers = 0
    for message in messages:
        for block in blocks_of(message, "tool_result"):
            use = calls.get(block["tool_use_id"], {})
            for i, text in texts_of(block.get("content", [])):
                moment = Moment("output", set(items_of(text)), [text], answers, (block["tool_use_id"], i), use)
                moment.is_error = block.get("is_error") is True
                found.append(moment)
        said = [text for _, text in texts_of(message["content"])]
        if message["role"] == "assistant":
            uses = tuple(blocks_of(message, "tool_use"))
            calls |= {use["id"]: use for use in uses}
            texts = said + [text for use in uses for text in strings(use["input"])]
            found.append(Moment("answer", all_items(texts), texts, answers, calls=uses))
            answers += 1
        elif said:
            found.append(Moment("text", all_items(said), said, answers, role=message["role"]))
    return found


def argument(call: dict[str, Any] | None, names: tuple[str, ...]) -> str | None:
    given = (call or {}).get("input")
    found = [given[name] for name in names if isinstance(given.get(name), str)] if isinstance(given, dict) else []
    return found[0] if found else None


class Oracle:
    """Answers for one list of messages. What a command prints and which files a call names is told: both have tests of their own."""

    def __init__(
        self,
        messages: list[dict[str, Any]],
        is_run_log: Callable[[str, str | None], bool],
        named_paths: Callable[[Any], tuple[str, ...]],
    ) -> None:
        self.named_paths = named_paths
        self.moments = moments_of(messages)
        self.outputs = {m.id: at for at, m in enumerate(self.moments) if m.id is not None}
        self.is_run_log = is_run_log
        self.holders: dict[tuple[str, str], list[int]] = {}
        for at, moment in enumerate(self.moments):
            for item in moment.items:
                self.holders.setdefault(item, []).append(at)

    def carrier(self, item: tuple[str, str], before: int) -> int:
        """Which moment held the item last before another."""
        return max(at for at in self.holders[item] if at < before)

    def is_common(self, item: tuple[str, str], before: int) -> bool:
        return sum(self.moments[at].kind == "output" for at in self.holders[item] if at < before) > 3

    def is_superseded(self, at: int) -> bool:
        (text,) = self.moments[at].texts
        newer_moments = self.moments[at + 1 :]
        if any(moment.kind == "output" and moment.texts == [text] for moment in newer_moments):
            return True
        share, rest = rest_of(text)
        if share < 0.8 or not rest <= {
            line for moment in newer_moments for said in moment.texts for line in rest_of(said)[1]
        }:
            return False
        end = len(self.moments)
        held = self.moments[at].items
        newer = {item for item in held if self.carrier(item, end) > at}
        rare = {item for item in held if not self.is_common(item, end)}
        if not rare:
            lines = {item for item in held if item[0] == "line"}
            return bool(lines) and lines <= newer
        left = [kind for kind, _ in rare - newer]
        return bool(newer) and "line" not in left and len(left) < 2

    def last_use(self, at: int) -> int:
        """The number of the last answer that used something which the output carried last then."""
        last = 0
        for item in self.moments[at].items:
            for user in self.holders[item]:
                is_later = user > at and self.moments[user].kind == "answer"
                if is_later and self.carrier(item, user) == at and not self.is_common(item, user):
                    last = max(last, self.moments[user].answers + 1)
        return last

    def last_touch(self, at: int) -> int:
        """The number of the last answer that read or wrote the output's path."""
        return max(
            (
                moment.answers + 1
                for moment in self.moments
                for use in moment.calls
                if any(tool in use["name"].lower() for tool in FILE_TOOLS)
                and any(may_be_one(path, own) for path in self.paths(use) for own in self.paths(self.moments[at].call))
            ),
            default=0,
        )

    def paths(self, call: dict[str, Any] | None) -> tuple[str, ...]:
        return self.named_paths((call or {}).get("input"))

    def is_spent(self, output: tuple[str, int], quiet_requests: int = 40, run_log_requests: int = 10) -> bool:
        at = self.outputs[output]
        now = sum(moment.kind == "answer" for moment in self.moments)
        moment = self.moments[at]
        moved = max(moment.answers, self.last_use(at))
        is_log = moment.is_error or self.is_run_log(
            (moment.call or {}).get("name", ""), argument(moment.call, ("command", "cmd"))
        )
        return (
            self.is_superseded(at)
            or now - max(moved, self.last_touch(at)) >= quiet_requests
            or (is_log and now - moved >= run_log_requests)
        )

    def task(self) -> list[str]:
        """The user's texts from the last on that came after an answer without calls and that the client did not write alone."""
        task: list[str] = []
        is_done = False
        for moment in self.moments:
            if moment.kind == "answer":
                is_done = not moment.calls
            if moment.kind == "text":
                if is_done and moment.role == "user" and not is_by_client(" ".join(moment.texts)):
                    task, is_done = [], False
                task = task + moment.texts
        return task

    def is_named(self, output: tuple[str, int]) -> bool:
        task = self.task()
        moment = self.moments[self.outputs[output]]
        common = [kind for kind, _ in moment.items & all_items(task)]
        if "line" in common or len(common) >= 2:
            return True
        said = "\n".join(task).casefold()
        names = [path.split("/")[-1] for path in self.paths(moment.call)]
        return any(
            re.search(r"\w", name) and re.search(r"(^|[^\w.-])" + re.escape(name) + r"($|\W)", said) for name in names
        )
