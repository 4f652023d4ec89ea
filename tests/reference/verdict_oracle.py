"""The verdict decoder again, slow and plain: one function for each part of the rules R1 to R12.

A candidate is parsed into a small tree that may stay open at its right edge; what it says is read off the tree afterwards.
Nothing here is shared with the compiled decoder.
"""

import re
from dataclasses import dataclass, field

BLANKS = " \t\n\r\v\f\u00a0\ufeff\u200b\u3000"  # R1
COMMAS = ",\uff0c"
COLONS = ":\uff1a"
CLOSING_QUOTE = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201d": "\u201d"}
UNTIL = {close: re.compile(rf"[^\\{close}]*") for close in CLOSING_QUOTE.values()}
ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
WORD = re.compile(r"[A-Za-z0-9_$.+-]+")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
INTEGER = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0)?")
PLAIN_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
# R2: kind, then the names that are of that kind
KINDS = {
    "think": "think(?:ing)?",
    "thought": "thoughts?",
    "reasoning": "reasoning",
    "reflection": "reflection",
    "scratchpad": "scratchpad",
    "analysis": "analysis",
}
TAG_BLANKS = f"[{BLANKS}]{{0,16}}"
PREFIX = "(?:[A-Za-z0-9_.-]{1,32}:)?"


def tags_of(opening, closing):
    """(kind, tag) for each name between these brackets; a tag's group `end` is a slash in closing tags."""
    start = f"{re.escape(opening)}{TAG_BLANKS}(?P<end>/{TAG_BLANKS})?"
    if opening == "[":
        return [(("think", "["), re.compile(f"{start}think{TAG_BLANKS}]", re.IGNORECASE | re.ASCII))]
    rest = f"(?:[{BLANKS}/][^{opening}{closing}]*)?{closing}"
    return [
        ((kind, opening), re.compile(f"{start}{PREFIX}(?:{names}){rest}", re.IGNORECASE | re.ASCII))
        for kind, names in KINDS.items()
    ]


TAGS = {opening: tags_of(opening, closing) for opening, closing in ("<>", "\uff1c\uff1e", "\u25c1\u25b7", "[]")}
TASK_BOX = re.compile(r"(?:^|[\n\r])[ \t]*(?:[-*]|[0-9]+\.)[ \t]+$")
SHOWS = ("verdict", "needed_by", "quote")  # R4
NAMES = (*SHOWS, "i")
MAX_LEVELS = 64  # R8


@dataclass
class Array:
    start: int
    items: list = field(default_factory=list)
    closed: bool = False
    inside: str = ""  # the text between its brackets, once closed


@dataclass
class Object:
    start: int
    members: list = field(default_factory=list)  # [key, value]
    closed: bool = False


@dataclass
class Text:
    text: str


@dataclass
class Number:
    text: str


@dataclass
class Sequence:
    how: str  # closed, cut, broken
    tier: int  # 1 answers first, 3 last; 0 never
    objects: list
    stray: int = 0


class Broke(Exception):
    def __init__(self, at, template=False):
        self.at, self.template = at, template


class Cut(Exception):
    pass


class TooDeep(Exception):
    pass


class Candidate:
    """One attempt to read a value that opens at `start`."""

    def __init__(self, text, start):
        self.text, self.start, self.at = text, start, start
        self.root = None
        self.has_content = False
        self.last_string = None  # where the last string's opening quote stands
        self.in_string = False

    def run(self):
        """How it ended: closed, cut, deep, broken or template."""
        try:
            self.root = self.container(1, None)
        except Broke as broke:
            self.at = broke.at
            return "template" if broke.template else "broken"
        except Cut:
            return "cut"
        except TooDeep:
            return "deep"
        return "closed"

    def peek(self):
        if self.at >= len(self.text):
            raise Cut
        return self.text[self.at]

    def skip_blanks(self):
        while True:
            char = self.peek()
            if char in BLANKS:
                self.at += 1
            elif char == "/":
                self.skip_slash_comment()
            elif char == "#" and self.text[self.at - 1] in BLANKS:
                self.skip_line()
            else:
                return

    def skip_line(self):
        while self.peek() not in "\n\r":
            self.at += 1

    def skip_slash_comment(self):
        two = self.text[self.at : self.at + 2]
        if two == "/":
            raise Cut
        if two == "//":
            self.skip_line()
        elif two == "/*":
            end = self.text.find("*/", self.at + 2)
            if end < 0:
                raise Cut
            self.at = end + 2
        else:
            raise Broke(self.at)

    def container(self, level, keep):
        if level > MAX_LEVELS:
            raise TooDeep
        node = Array(self.at) if self.text[self.at] == "[" else Object(self.at)
        if keep is None:
            self.root = node
        else:
            keep(node)
        self.at += 1
        if isinstance(node, Array):
            self.fill_array(node, level)
        else:
            self.fill_object(node, level)
        node.closed = True
        return node

    def fill_array(self, node, level):
        after = ""  # what stood before: "" just opened, "," or the element's last character class
        while True:
            self.skip_blanks()
            char = self.peek()
            if char == "]":
                node.inside = self.text[node.start + 1 : self.at]
                self.at += 1
                return
            if char in COMMAS:
                if after == "":
                    raise Broke(self.at)
                self.at += 1
                after = ","
                continue
            if after == "value" or (after == "bracket" and char not in "[{"):
                raise Broke(self.at)
            was = char
            self.value(level, node.items.append)
            after = "bracket" if was in "[{" else "value"

    def fill_object(self, node, level):
        after = ""
        while True:
            self.skip_blanks()
            char = self.peek()
            if char == "}":
                self.at += 1
                return
            if char in COMMAS:
                if after == "":
                    raise Broke(self.at)
                self.at += 1
                after = ","
                continue
            if after == "value":
                raise Broke(self.at)
            self.refuse_template()
            key = self.key()
            self.skip_blanks()
            if self.peek() not in COLONS:
                raise Broke(self.at)
            self.at += 1
            if key in NAMES:
                self.has_content = True
            member = [key, ...]
            node.members.append(member)
            self.skip_blanks()
            self.value(level, lambda value, member=member: member.__setitem__(1, value))
            after = "value"

    def refuse_template(self):
        if self.peek() in "<\u2026" or self.text.startswith("...", self.at):
            raise Broke(self.at, template=True)

    def key(self):
        """The key's name; ASCII letters lowered."""
        char = self.peek()
        name = self.string() if char in CLOSING_QUOTE else self.word()
        return "".join(c.lower() if c.isascii() else c for c in name)

    def value(self, level, keep):
        self.refuse_template()
        char = self.peek()
        if char in "[{":
            self.container(level + 1, keep)
        elif char in CLOSING_QUOTE:
            keep(Text(self.string()))
        else:
            keep(meaning_of(self.word()))

    def word(self):
        match = WORD.match(self.text, self.at)
        if not match:
            raise Broke(self.at)
        if match.end() == len(self.text):
            raise Cut
        self.at = match.end()
        return match.group()

    def string(self):
        self.last_string, self.in_string = self.at, True
        close = CLOSING_QUOTE[self.text[self.at]]
        self.at += 1
        out = []
        while (char := self.peek()) != close:
            if char == "\\":
                self.at += 1
                out.append(self.escape())
            else:
                plain = UNTIL[close].match(self.text, self.at)
                out.append(plain.group())
                self.at = plain.end()
        self.at += 1
        self.in_string = False
        return "".join(out)

    def escape(self):
        char = self.peek()
        if char == "u":
            unit = self.hex4(self.at + 1)
            if unit is None:
                self.at += 1
                return "\\u"
            self.at += 5
            if 0xD800 <= unit < 0xDC00 and self.text.startswith("\\u", self.at):
                low = self.hex4(self.at + 2)
                if low is not None and 0xDC00 <= low < 0xE000:
                    self.at += 6
                    return chr(0x10000 + ((unit - 0xD800) << 10) + low - 0xDC00)
            return "\ufffd" if 0xD800 <= unit < 0xE000 else chr(unit)
        self.at += 1
        return ESCAPES.get(char, "\\" + char)

    def hex4(self, at):
        digits = self.text[at : at + 4]
        return int(digits, 16) if re.fullmatch(r"[0-9A-Fa-f]{4}", digits) else None


def meaning_of(word):
    """A bare word's value (R5): null, a truth value, a number, or text."""
    if word in ("null", "None", "undefined"):
        return None
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    return Number(word) if NUMBER.fullmatch(word) else Text(word)


def plain(text):
    """Trimmed and without (ASCII) case (R11)."""
    return "".join(c.lower() if c.isascii() else c for c in text.strip(BLANKS))


def is_verdict(node):
    """R4, of an object that may still be open; `...` stands where a value was due and never came."""
    return any(
        key in SHOWS and value is not ... and value is not None and value != Text("") for key, value in node.members
    )


def values(node, name):
    return [value for key, value in node.members if key == name]


def same(one, other):
    if isinstance(one, Text) and isinstance(other, Text):
        return plain(one.text) == plain(other.text)
    if isinstance(one, (Array, Object)) or isinstance(other, (Array, Object)):
        return False
    return type(one) is type(other) and one == other


def agree(found, equal):
    return all(equal(found[0], value) for value in found[1:])


def integer_of(value):
    """R10: the integer that a value of `i` denotes; None for anything else and for what no label can be."""
    if isinstance(value, Number) and (match := INTEGER.fullmatch(value.text)):
        digits = match.group(1)
    elif isinstance(value, Text) and PLAIN_INTEGER.fullmatch(trimmed := value.text.strip(BLANKS)):
        digits = trimmed
    else:
        return None
    return int(digits) if len(digits) < 30 and abs(int(digits)) < 2**63 else None


def same_label(one, other):
    """Labels are exact: integers compare by what they denote, everything else as written."""
    first, second = integer_of(one), integer_of(other)
    if first is not None or second is not None:
        return first == second
    return not isinstance(one, (Array, Object)) and type(one) is type(other) and one == other


def label_of(node):
    """An integer, `no_label` or `unknown_label`."""
    found = values(node, "i")
    if not found or not agree(found, same_label) or found[0] is None:
        return "no_label"
    label = integer_of(found[0])
    return "unknown_label" if label is None else label


def is_unanswered(node):
    found = values(node, "needed_by")
    return not found or (
        agree(found, same) and (found[0] is None or (isinstance(found[0], Text) and plain(found[0].text) == ""))
    )


def action_of(node):
    """R11 for one object."""
    found = values(node, "verdict")
    if not found or not agree(found, same) or not isinstance(found[0], Text):
        return "unusable"
    said = plain(found[0].text)
    if said != "drop":
        return "keep" if said == "keep" else "unusable"
    need = values(node, "needed_by")
    names_none = bool(need) and agree(need, same) and isinstance(need[0], Text) and plain(need[0].text) == "none"
    if names_none:
        return "drop"
    if not is_unanswered(node):
        return "refused"
    return "unusable" if any(key not in NAMES for key, _ in node.members) else "drop"


def is_usable(objects):
    return any(action_of(node) != "unusable" for node in objects)


def tag_at(text, at):
    """(kind, match) of the reasoning tag that starts here, or None."""
    for kind, pattern in TAGS.get(text[at], ()):
        if tag := pattern.match(text, at):
            return kind, tag
    return None


def closing_tag(text, at, kind):
    """Where the next closing tag of this kind ends, or None."""
    while (at := text.find(kind[1], at)) >= 0:
        found = tag_at(text, at)
        if found and found[0] == kind and found[1]["end"]:
            return found[1].end()
        at += 1
    return None


class Reply:
    """A walk over the whole text: what was found, in order."""

    def __init__(self, text):
        self.text = text
        self.ended_inside = False
        self.forget()
        self.scan()

    def forget(self):
        self.sequences, self.objections = [], []
        self.run, self.run_end, self.run_may_answer = [], 0, True
        self.after_break = self.broke = self.gave_up = self.saw_bracket = False

    def scan(self):
        at = 0
        while at < len(self.text):
            char = self.text[at]
            if found := tag_at(self.text, at):
                kind, tag = found
                if tag["end"]:
                    self.forget()
                    at = tag.end()
                else:
                    self.end_run("closed")
                    end = closing_tag(self.text, tag.end(), kind)
                    self.ended_inside = self.ended_inside or end is None
                    at = len(self.text) if end is None else end
            elif char in "[{":
                self.saw_bracket = True
                at = self.candidate(at)
            else:
                at += 1
        self.end_run("closed")

    def continues_run(self, at):
        return bool(self.run) and not self.text[self.run_end : at].strip(BLANKS + COMMAS)

    def end_run(self, how):
        """Close the run of bare objects; `template` forgets it."""
        run, self.run = self.run, []
        if not run or how == "template":
            return
        self.objections += run
        if self.run_may_answer and (len(run) > 1 or how != "closed"):
            self.sequences.append(Sequence(how, 1 if is_usable(run) or how == "cut" else 2, run))

    def candidate(self, at):
        """Read what opens at `at`; return where scanning goes on."""
        found = Candidate(self.text, at)
        how = found.run()
        root = found.root
        is_verdict_root = isinstance(root, Object) and is_verdict(root)
        if not (how == "closed" and is_verdict_root and self.continues_run(at)):
            named = isinstance(root, Object) and any(key in NAMES for key, _ in root.members)
            behind = named and how in ("cut", "broken", "template") and self.continues_run(at)
            self.end_run(how if behind else "closed")
        if how == "closed" and is_verdict_root:
            if not self.run:
                self.run_may_answer = not self.after_break
            self.run.append(root)
            self.run_end = found.at
            return found.at
        if how == "deep":
            self.gave_up = True
            self.after_break = self.after_break or found.has_content
            return at + 1
        if how != "template":
            self.read_tree(found, how)
        if how == "cut":
            self.ended_inside = True
            if found.in_string and not found.has_content:
                return found.last_string + 1
            return len(self.text)
        if how == "broken" and found.has_content:
            self.after_break = self.broke = True
        if how != "closed" and not found.has_content and found.last_string is not None:
            return found.last_string + 1
        return found.at

    def read_tree(self, found, how):
        """Collect the sequences and objections of one candidate."""
        innermost = innermost_open_array(found.root)
        may_answer = not self.after_break or self.is_first_on_line(found.start)
        for node, parent in inner_first(found.root, None):
            if isinstance(node, Object):
                if node.closed and is_verdict(node):
                    self.objections.append(node)
            elif may_answer and (node.closed or node is innermost):
                sequence = self.sequence(node, parent, "closed" if node.closed else how)
                if sequence.tier:
                    self.sequences.append(sequence)

    def sequence(self, node, parent, how):
        objects = [item for item in node.items if isinstance(item, Object) and item.closed and is_verdict(item)]
        complete = [item for item in node.items if not isinstance(item, (Array, Object)) or item.closed]
        if is_usable(objects) or how == "cut" and any(isinstance(item, Object) for item in node.items):
            tier = 1
        elif objects:
            tier = 2
        elif node.items or how == "broken":
            tier = 0
        elif how == "cut":
            tier = 3
        elif parent is None:
            tier = 0 if self.is_no_answer(node) else 1
        else:
            tier = 3 if isinstance(parent, Object) else 0
        return Sequence(how, tier, objects, len(complete) - len(objects))

    def is_no_answer(self, node):
        """An empty array in text that is an index or a task-list box (R3)."""
        before = self.text[: node.start]
        if re.search(r"[A-Za-z0-9_)\]]$", before[-1:]):
            return True
        return node.inside == " " and bool(TASK_BOX.search(before))

    def is_first_on_line(self, at):
        line = re.split(r"[\n\r]", self.text[:at])[-1]
        return not line.strip(BLANKS)


def innermost_open_array(root):
    """R6: of a cut or broken candidate, not inside an open verdict object."""
    found, node = None, root
    while node is not None and not node.closed:
        if isinstance(node, Array):
            found, children = node, node.items
        elif is_verdict(node):
            break
        else:
            children = [value for _, value in node.members]
        last = children[-1] if children else None
        node = last if isinstance(last, (Array, Object)) else None
    return found


def inner_first(node, parent):
    """Every container that is not data (R4), children before parents, with what it stands in."""
    if isinstance(node, Array):
        children = node.items
    else:
        children = [] if is_verdict(node) else [value for _, value in node.members]
    for child in children:
        if isinstance(child, (Array, Object)):
            yield from inner_first(child, node)
    yield node, parent


def text_of(node, name):
    found = values(node, name)
    return found[0].text if found and isinstance(found[0], Text) else None


def judge(reply, answer, labels):
    """R10 to R12 for the answer: (verdicts, counters)."""
    count = dict.fromkeys(("no_label", "unknown_label", "duplicate_label", "criterion_missing", "label_shift"), 0)
    count["stray"] = answer.stray
    first, actions, named = {}, {}, set()
    for node in answer.objects:
        label = label_of(node)
        named.add(label)
        if label in labels:
            count["duplicate_label"] += label in first
            first.setdefault(label, node)
            actions.setdefault(label, set()).add(action_of(node))
        else:
            count["no_label" if label == "no_label" else "unknown_label"] += 1
    objected = {label_of(node) for node in reply.objections if action_of(node) in ("keep", "refused")}
    shifted = bool(labels) and max(labels) + 1 in named and min(labels) not in named
    count["label_shift"] = int(shifted)
    verdicts = []
    for label, node in first.items():
        action = actions[label].pop() if len(actions[label]) == 1 else "conflict"
        if action == "drop" and (label in objected or shifted):
            action = "conflict"
        count[action] = count.get(action, 0) + 1
        count["criterion_missing"] += is_unanswered(node)
        fields = {name: text_of(node, name) for name in ("needed_by", "quote", "verdict")}
        verdicts.append({"i": label, **fields, "action": action})
    count["missing"] = len(labels) - len(first)
    return verdicts, {name: number for name, number in count.items() if number}


def answer_of(reply):
    """R9."""
    for tier in (1, 2, 3):
        found = [sequence for sequence in reply.sequences if sequence.tier == tier]
        if found:
            return found[-1]
    return None


def why_unparseable(reply):
    if not reply.text.strip(BLANKS):
        return "empty"
    if not reply.saw_bracket:
        return "no_json"
    if reply.broke:
        return "malformed"
    if reply.gave_up:
        return "limit"
    return "lone_object" if reply.objections else "no_verdict"


def decode(reply, labels):
    """What a vector's `expected` holds."""
    if isinstance(reply, str):
        reply = reply.encode("utf-8", "surrogatepass")
    found = Reply(reply.decode("utf-8", "replace"))
    answer = answer_of(found)
    verdicts, counters = [], {}
    if answer:
        verdicts, counters = judge(found, answer, set(labels))
        status = "ok" if answer.how == "closed" else "truncated"
        reason = {"closed": None, "cut": "cut", "broken": "malformed"}[answer.how]
    elif found.ended_inside:
        status, reason = "truncated", "cut"
        counters = {"missing": len(set(labels))} if labels else {}
    else:
        status, reason = "unparseable", why_unparseable(found)
    drops = sorted(verdict["i"] for verdict in verdicts if verdict["action"] == "drop")
    return {"status": status, "reason": reason, "verdicts": verdicts, "drops": drops, "counters": counters}
