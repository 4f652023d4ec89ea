"""The rules of docs/shape.md once more, as regular expressions and plain counting: slow, obvious, and all in Python.

Written from the rules, sharing no code with the compiled module; the JSON reader is a table of states where the other
one is a set of functions.
"""

import re
from collections import Counter

HEAD, TAIL = 8192, 4096
BLANK = b" \t\r\x0b\x0c"
PATH = rb"[A-Za-z0-9_./@~+\-\[\]$#%=(),]"


def rx(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.DOTALL)


NUMBERED = rx(rb" *([0-9]{1,9})(\xe2\x86\x92|\t|\|)")
HIT = rx(rb"(?=%s*[./])%s+:[0-9]+[:-]" % (PATH, PATH))
DIAGNOSTIC = rx(rb"%s+:[0-9]+:[0-9]+: ." % PATH)
HIT_CONTEXT = rx(rb"%s*?[./]%s*?-[0-9]+-" % (PATH, PATH))
HIT_TEXT = rx(rb"(?=%s*[./])%s+:(?! [^ ])." % (PATH, PATH))
BARE_HIT = rx(rb"([0-9]{1,7}):(?![0-9]{2}:)")
BARE_CONTEXT = rx(rb"([0-9]{1,7})-(?![0-9]{2}-)")
FOUND = rx(rb"Found [0-9]+ ")
LONG = rx(rb"[-dlbcps][-rwxsStTl]{9}[@+. ]")
TREE = rx(rb"\xe2\x94[\x94\x9c]\xe2\x94\x80")
EXTENSION = rx(rb"\.[A-Za-z][A-Za-z0-9]{0,7}$")
LISTING_NEUTRAL = rx(rb"total [0-9]|(?=%s*[./])%s+:$" % (PATH, PATH))
HUNK = rx(rb"@@ -[0-9]")
DIFFISH = rx(
    rb"[-+@ \\]|diff |index |commit |Author:|Date:|Merge:|new file|deleted file|rename |similarity |Binary files |old mode|new mode"
)
STRONG = rx(
    rb"test result: |Test Suites: |--- (PASS|FAIL|SKIP): |=== (RUN|PAUSE|CONT) |Tests: +[0-9]"
    rb"|Test Files +[0-9]|# (tests|pass|fail) +[0-9]|Ran +[0-9]+ test"
    rb"|Tests +[0-9]+ (passed|failed|skipped)|(ok|FAIL|\?) *\t"
    rb"|[0-9]+ (passing|failing|passed|failed|pass|fail)(?![A-Za-z])"
    rb"|=.*[0-9] (passed|failed|error|skipped|deselected).*=$"
)
WEAK = rx(
    rb"(PASS|FAIL|PASSED|FAILED) |(not )?ok +[0-9]|(PASS|FAIL)$|test [^ ]+ \.\.\. |.* (PASSED|FAILED)"
    rb"|(\xe2\x9c[\x93\x94\x95\x97\x98]|\xc3\x97|\xe2\x88\x9a) "
)
STACK_HEADER = rx(
    rb"Traceback \(most recent call last\)|panic: |Exception in thread |Caused by: |stack backtrace:"
    rb"|goroutine +[0-9]+ \[|thread '.*' panicked at"
)
FRAME = rx(rb"at [^ ].*:[0-9]+\)?$|at [^ ]:[0-9]+\)?$|File \".*\", line [0-9]")
GO_FRAME = rx(rb"/.*\.go:[0-9]")
KEY = rx(rb"(?:- )?[\"']?([A-Za-z_$])[A-Za-z0-9_.$/-]*[\"']?:(?: .*)?$")
BASE64 = rx(rb"[A-Za-z0-9+/_-]*={0,2}$")
HEADING = rx(rb"(#{1,6}) [^ ]")
BOLD = rx(rb"\*\*[^ */].*\*\*")
BULLET = rx(rb"([-*+]|[0-9]{1,3}[.)]) [^ ]")
CODE_START = rx(
    rb"[})\]]|//|/\*|\*/|#include|#define|#!/|(if|for|while|switch) \("
    rb"|(import|export|const|let|var|function|func|fn|pub|def|class|struct|enum|impl|interface|package|async|return"
    rb"|public|private|static|elif|namespace) "
)
CODE_END = rx(rb".*([{};(]|\):|\),|=>)$")
OPERATOR = rx(rb".* (=|:=|=>|==|!=|\+=|&&|\|\|) ")
CALL = rx(rb"[A-Za-z_][A-Za-z0-9_.]*\(.*\)$")
OPENER = rx(rb"(if |for |while |try:|else:|except|with ).*:$|(try:|else:)$")
MARKUP = rx(rb"<[A-Za-z/!]")
SENTENCE = rx(rb".*([.!?:]|\xe3\x80\x82|\xef\xbc[\x81\x9f]|\xe2\x80\xa6)$|.*\. [A-Z]")


# JSON: (state, byte) -> state; a stack holds the open brackets; nothing recurses.
SPACE = b" \t\n\r"


def read_json(text: bytes, at: int) -> tuple[str, int, int]:
    """(status, first byte that fits no JSON text, elements of the outermost array) of the value that starts at `at`."""
    stack: list[int] = []
    state, records, i = "value", 0, at
    while i < len(text):
        c = text[i]
        if state in ("value", "first", "name", "first_name", "colon", "after") and c in SPACE:
            i += 1
            continue
        if state in ("value", "first"):
            if state == "first" and c == ord("]"):
                stack.pop()
                state = "after"
            else:
                if state == "first" and len(stack) == 1:
                    records = 1
                if c in b"[{":
                    stack.append(c)
                    state = "first" if c == ord("[") else "first_name"
                elif c == ord('"'):
                    state = "string"
                elif c in b"-0123456789tfn":
                    token, final = longest_token(text, i)
                    i = token
                    if not final:
                        return ("cut" if i == len(text) else "bad"), i, records
                    state = "after"
                    if not stack:
                        return "valid", i, records
                    continue
                else:
                    return "bad", i, records
        elif state in ("name", "first_name"):
            if state == "first_name" and c == ord("}"):
                stack.pop()
                state = "after"
            elif c == ord('"'):
                state = "name_string"
            else:
                return "bad", i, records
        elif state in ("string", "name_string"):
            if c == ord("\\"):
                k = i + 1
                if k == len(text):
                    return "cut", k, records
                if text[k] == ord("u"):
                    for _ in range(4):
                        k += 1
                        if k == len(text):
                            return "cut", k, records
                        if text[k] not in b"0123456789abcdefABCDEF":
                            return "bad", k, records
                elif text[k] not in b'"\\/bfnrt':
                    return "bad", k, records
                i = k
            elif c == ord('"'):
                state = "after" if state == "string" else "colon"
            elif c < 0x20:
                return "bad", i, records
        elif state == "colon":
            if c != ord(":"):
                return "bad", i, records
            state = "value"
        elif state == "after":
            if c == ord(","):
                records += len(stack) == 1 and stack[0] == ord("[")
                state = "value" if stack[-1] == ord("[") else "name"
            elif c == stack[-1] + 2:
                stack.pop()
            else:
                return "bad", i, records
        i += 1
        if state == "after" and not stack:
            return "valid", i, records
    return "cut", i, records


def longest_token(text: bytes, i: int) -> tuple[int, bool]:
    """How far a number or word can be read from `i`, and whether it is whole there."""
    for word in (b"true", b"false", b"null"):
        if text[i] == word[0]:
            k = 0
            while k < len(word) and i + k < len(text) and text[i + k] == word[k]:
                k += 1
            return i + k, k == len(word)
    end = i
    # The longest prefix that can still become a number, then: is it one?
    prefix = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+)?)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?)?").match(text, i)
    assert prefix is not None
    end = prefix.end()
    whole = re.fullmatch(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", text[i:end]) is not None
    return end, whole


def stray_bytes(text: bytes) -> int:
    """Bytes that belong to no well-formed UTF-8 character."""
    stray = i = 0
    while i < len(text):
        for k in (1, 2, 3, 4):
            try:
                text[i : i + k].decode("utf-8")
            except UnicodeDecodeError:
                continue
            i += min(k, len(text) - i)
            break
        else:
            stray += 1
            i += 1
    return stray


def json_lines(text: bytes, at: int) -> tuple[int, bool]:
    """(number of lines that are one object or array each, is the last one cut); (0, False) if the text is no such."""
    records, cut = 0, False
    pos = at
    lines = text[at:].split(b"\n")
    for number, line in enumerate(lines):
        end = pos + len(line)
        pos = end + 1
        s = line.strip(BLANK)
        if not s:
            continue
        if len(s) >= 2 and s[:1] + s[-1:] in (b"{}", b"[]"):
            if end <= at + HEAD or not records:
                status, reach, _ = read_json(s, 0)
                if status != "valid" or reach != len(s):
                    return 0, False
            records += 1
        elif number == len(lines) - 1 and records >= 2 and s[0] in b"{[":
            cut = True
        else:
            return 0, False
    return (records, cut) if records >= 2 else (0, False)


def windows(text: bytes) -> list[bytes]:
    if len(text) <= HEAD + TAIL:
        return [text]
    head = text[: text.rfind(b"\n", 0, HEAD) + 1] or text[:HEAD]
    tail = text[-TAIL:]
    return [head, tail[tail.index(b"\n") + 1 :]] if b"\n" in tail else [head]


class Lines:
    """Counts of the forms of the lines that are not blank."""

    def __init__(self, text: bytes) -> None:
        self.n: Counter[str] = Counter()
        self.last_number = self.last_bare = self.alone = -1
        self.first: dict[str, int] = {}
        self.base64_len = self.since_strong = 0
        self.in_fence = False
        for window in windows(text):
            lines = window.split(b"\n")
            for raw in lines:
                if raw.strip(BLANK):
                    self.see(raw, raw.strip(BLANK), len(raw) - len(raw.lstrip(BLANK)))

    def add(self, name: str, amount: object) -> None:
        self.n[name] += int(bool(amount)) if not isinstance(amount, int) else amount

    def see(self, raw: bytes, s: bytes, indent: int) -> None:
        self.add("lines", 1)
        self.numbers(raw)
        if indent == 0:
            self.hits(s)
        self.listing(s)
        self.columns(raw, s, indent)
        self.add("hunk", HUNK.match(raw))
        self.add("git", raw.startswith(b"diff --git "))
        self.add("diffish", DIFFISH.match(raw))
        strong = STRONG.match(s) is not None
        self.add("strong", strong)
        self.add("weak", not strong and WEAK.match(s))
        self.since_strong = 0 if strong else self.since_strong + 1
        self.add("stack_header", STACK_HEADER.match(s))
        self.add("frame", FRAME.match(s) or (indent and GO_FRAME.match(s)))
        self.base64(s)
        self.yaml(s, indent)
        letters = len(re.findall(rb"[A-Za-z]", s))
        high = len(re.findall(rb"[\x80-\xff]", s))
        gaps = len(re.findall(rb" +", s))
        wordy = (2 * high >= len(s) and high >= 12) or (
            gaps >= 4 and 10 * (letters + high + s.count(b" ")) >= 8 * len(s)
        )
        self.add("wordy", wordy)
        self.add("sentence", SENTENCE.match(s))
        fence = s.startswith((b"```", b"~~~"))
        if fence:
            self.in_fence = not self.in_fence
        self.add("fence", fence)
        self.add("fenced", fence or self.in_fence)
        if not fence and not self.in_fence:
            self.markdown(s, indent)
            self.code(s, indent)

    def numbers(self, raw: bytes) -> None:
        if m := NUMBERED.match(raw):
            self.add("numbered", 1)
            self.add("arrow", m[2] == b"\xe2\x86\x92")
            self.add("consecutive", int(m[1]) == self.last_number + 1)
            self.last_number = int(m[1])

    def hits(self, s: bytes) -> None:
        hit = HIT.match(s)
        if hit and not DIAGNOSTIC.match(s):
            self.add("hit", 1)
        elif not hit and HIT_CONTEXT.match(s):
            self.add("hit_context", 1)
        elif not hit and HIT_TEXT.match(s):
            self.add("hit_text", 1)
        if m := BARE_HIT.match(s):
            self.add("bare_hit", 1)
            self.add("bare_back", int(m[1]) <= self.last_bare)
            self.last_bare = int(m[1])
        self.add("bare_context", BARE_CONTEXT.match(s))
        self.add("dashes", s == b"--")
        self.add("found", FOUND.match(s))

    def listing(self, s: bytes) -> None:
        self.add("long", LONG.match(s))
        self.add("tree", TREE.search(s))
        path = (
            re.fullmatch(rb"%s+" % PATH, s)
            and re.search(rb"[A-Za-z0-9]", s)
            and s[-1] not in b"(,="
            and (b"/" in s or s[:1] == b"." or EXTENSION.search(s))
        )
        self.add("path", path)
        self.add("rooted", path and s[0] in b"/~.")
        self.add("listing_neutral", LISTING_NEUTRAL.match(s))

    def columns(self, raw: bytes, s: bytes, indent: int) -> None:
        unquoted = re.sub(rb'"[^"]*("|$)', lambda m: b"q" * len(m[0]), s)
        tabs, commas = s.count(b"\t"), unquoted.count(b",")
        if not self.first:
            self.first = {"tabs": tabs, "commas": commas, "digit": indent == 0 and s[:1].isdigit()}
        self.add("tab_same", tabs == self.first["tabs"])
        self.add("tab_led", raw[:1] == b"\t")
        self.add("comma_same", commas == self.first["commas"])
        self.add("comma_space", b", " in unquoted)
        self.add("comma_end", s[-1:] == b",")

    def base64(self, s: bytes) -> None:
        self.add("armour", s.startswith((b"-----BEGIN ", b"-----END ")))
        if BASE64.match(s):
            if not self.n["base64"]:
                self.base64_len = len(s)
            self.add("base64", 1)
            self.add("base64_same", len(s) == self.base64_len)
            self.n["base64_chars"] += len(s)
            self.n["base64_marks"] += len(re.findall(rb"[/_-]", s))
            self.n["upper"] += len(re.findall(rb"[A-Z]", s))
            self.n["lower"] += len(re.findall(rb"[a-z]", s))
            self.n["digits"] += len(re.findall(rb"[0-9]", s))

    def yaml(self, s: bytes, indent: int) -> None:
        key = None if s[-1] in b",{;(" else KEY.match(s)
        dash = s.startswith(b"- ")
        self.add("nested", self.alone >= 0 and (indent > self.alone or dash))
        self.alone = indent if key and s.endswith(b":") and self.is_alone(s) else -1
        self.add("key", key)
        self.add("key_lower", key and key[1].islower())
        self.add("item", dash and not key)
        self.add("comment", s.startswith(b"#"))
        self.add("document", s == b"---")

    @staticmethod
    def is_alone(s: bytes) -> bool:
        return re.fullmatch(rb"(?:- )?[\"']?[A-Za-z_$][A-Za-z0-9_.$/-]*[\"']?:", s) is not None

    def markdown(self, s: bytes, indent: int) -> None:
        heading = HEADING.match(s) if indent == 0 else None
        self.add("h1", heading and len(heading[1]) == 1)
        self.add("h2", heading and len(heading[1]) > 1)
        self.add("table", len(s) >= 3 and s[:1] == b"|" == s[-1:])
        self.add("bold", BOLD.search(s))
        self.add("link", b"](" in s)
        self.add("bullet", BULLET.match(s))

    def code(self, s: bytes, indent: int) -> None:
        inside_comment = indent % 2 == 1 and (s == b"*" or s.startswith(b"* "))
        code = inside_comment or any(r.match(s) for r in (CODE_END, OPERATOR, CODE_START, CALL, OPENER))
        markup = MARKUP.match(s)
        self.add("code", code or markup)
        self.add("markup", markup and not code)


def kind_of_lines(text: bytes) -> str:
    t = Lines(text)
    n, first = t.n, t.first
    lines = n["lines"]

    def share(part: int, whole: int, tenths: int) -> bool:
        return 10 * part >= tenths * whole

    if not lines:
        return "other"
    mixed = n["upper"] and n["lower"] and n["digits"] and 16 * n["base64_marks"] <= n["base64_chars"]
    if t.base64_len >= 60 and n["base64"] + n["armour"] == lines and n["base64_same"] + 1 >= n["base64"] and mixed:
        return "base64"
    if n["arrow"] and share(n["arrow"], lines, 5):
        return "numbered_file_read"
    table = first["digit"] and first["tabs"] >= 2 and share(n["tab_same"], lines, 9)
    if (not table and n["numbered"] >= 2 and share(n["numbered"], lines, 5)) and (
        4 * n["consecutive"] >= 3 * (n["numbered"] - 1)
    ):
        return "numbered_file_read"
    if n["hunk"] + n["git"] and share(n["diffish"], lines, 8):
        return "diff"
    if n["strong"] and t.since_strong <= 20 or n["weak"] >= 2 and share(n["weak"] + n["strong"], lines, 2):
        return "test_log"
    if n["stack_header"] and n["frame"] and share(n["frame"] + n["stack_header"], lines, 2):
        return "stack_trace"
    if n["frame"] >= 3 and 3 * n["frame"] >= lines:
        return "stack_trace"
    rest = lines - n["dashes"] - n["found"]
    bare = n["bare_hit"] and 10 * n["bare_back"] <= n["bare_hit"]
    if (
        (n["hit"] and share(n["hit"] + n["hit_context"], rest, 6))
        or (bare and share(n["bare_hit"] + n["bare_context"], rest, 8))
        or (n["hit_text"] >= 2 and share(n["hit_text"] + n["hit"], rest, 9))
    ):
        return "grep_hits"
    rest = lines - n["found"] - n["listing_neutral"]
    if n["long"] + n["tree"] and share(n["long"] + n["tree"], rest, 6):
        return "directory_listing"
    if (n["path"] >= 2 or n["path"] and (n["rooted"] or n["found"])) and share(n["path"], rest, 9):
        return "directory_listing"
    if (first["tabs"] and lines >= (2 if first["tabs"] >= 2 else 3) and share(n["tab_same"], lines, 9)) and (
        10 * n["tab_led"] <= lines
    ):
        return "tsv"
    if (first["commas"] and lines >= (3 if first["commas"] >= 2 else 5) and share(n["comma_same"], lines, 9)) and (
        4 * max(n["comma_space"], n["comma_end"], n["code"]) <= lines and 2 * n["wordy"] <= lines
    ):
        return "csv"
    open_lines = lines - n["fenced"]
    marks = n["h1"] + n["h2"] + n["fence"] + n["table"] + n["bold"] + n["link"]
    if (n["h2"] or n["fence"] >= 2 or n["table"] >= 3 or n["bold"] >= 2 or n["link"] >= 2) and (
        marks + n["bullet"] >= 2 and 25 * marks >= open_lines and 3 * n["code"] <= open_lines
    ):
        return "markdown"
    flat = n["key_lower"] == n["key"] and n["key"] + n["comment"] == lines
    if (n["key"] >= 3 and 4 * n["key"] >= lines and (n["nested"] or n["document"] or flat)) and (
        share(n["key"] + n["item"] + n["comment"] + n["document"], lines, 8)
    ):
        return "yaml"
    if n["code"] and share(n["code"], open_lines, 4) and (open_lines >= 3 or n["code"] - n["markup"] == open_lines):
        return "source_code"
    return "prose" if n["wordy"] and n["sentence"] and share(n["wordy"], lines, 6) else "other"


def describe(content: str | bytes) -> tuple[str, int | None, int, int]:
    """(kind, records, lines, size in bytes)."""
    text = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    lines = text.count(b"\n") + (text[-1:] not in (b"", b"\n"))
    controls = len(re.findall(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f]", text))
    stray = 0 if text.isascii() else stray_bytes(text)
    escapes = text.count(b"\x1b")
    kind, records = None, None
    if b"\0" in text or 32 * controls > len(text) or 8 * stray > len(text):
        return "binary", None, lines, len(text)
    if escapes >= 2 and 20 * escapes >= lines:
        return "coloured_terminal", None, lines, len(text)
    body = text.removeprefix(b"\xef\xbb\xbf")
    at = len(body) - len(body.lstrip(BLANK + b"\n"))
    if body[at : at + 1] in (b"{", b"["):
        kind, records = json_kind(body, at)
        if stray:
            records = None
    return kind or kind_of_lines(body), records, lines, len(text)


def json_kind(body: bytes, at: int) -> tuple[str | None, int | None]:
    status, reach, records = read_json(body, at)
    if status == "valid":
        reach = len(body) - len(body[reach:].lstrip(SPACE))
        if reach < len(body):
            count, cut = json_lines(body, at)
            if count:
                return "json_lines", None if cut else count
    if reach < len(body) and (reach - at < 256 or 2 * reach < len(body)):
        return None, None
    if status == "cut" and len(body) - at < 16:
        return None, None
    kind = "json_array" if body[at : at + 1] == b"[" else "json_object"
    whole = status == "valid" and reach == len(body) and kind == "json_array" and not body[:at].strip(SPACE)
    return kind, records if whole else None
