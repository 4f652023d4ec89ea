"""Which calls answer with a log of what ran: tests, builds, linters, version control that reports, task lists.

Such an output says how a moment was; the next run says it anew. A command is a run log only if every part of it that
prints is one (`run_tools`): doubt says no, and the output stays as long as any other.
"""

import re
import shlex
from functools import lru_cache

from cg.sweep.judging.run_tools import names, runs

TASK_LISTS = names(
    "todowrite todoread todo_write todo_read taskcreate taskupdate tasklist taskget update_plan updateplan"
)
BREAKS = frozenset(["&&", "||", ";", "|", "&", "|&", ";;"])
REDIRECTIONS = frozenset([">", ">>", ">&", "&>", "&>>", ">|"])  # input that is redirected may be anything: doubt
PUNCTUATION = frozenset("();<>|&")
HIDDEN = ("$(", "`")  # a command within the command
HERE_TEXT = "$(cat <<"  # how a commit's message is often made, which the call shows
ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
MOST_CHARS = 4096  # of a command that is looked at; what is longer writes files

Part = tuple[bool, list[str]]  # (whether it reads another's output, its words)


def is_run_log(tool: str, command: str | None) -> bool:
    """Whether a call of `tool`, with its shell command if it has one, answers with a log of what ran."""
    if tool.lower() in TASK_LISTS:
        return True
    return command is not None and len(command) <= MOST_CHARS and _is_run(command)


@lru_cache(maxsize=1024)  # 4 MB at the most
def _is_run(command: str) -> bool:
    has_run = False
    for is_piped, words in _parts(command) or [(False, ["?"])]:
        behind = _unwrapped(words)
        if behind is None:
            return False
        if not behind:
            continue
        name, arguments = behind[0].rpartition("/")[2], behind[1:]
        if _is_silent(name, arguments) or (is_piped and _only_filters(name, arguments)):
            continue
        if not _has_plain_words(behind) or not runs(behind[0], arguments):
            return False
        has_run = True
    return has_run


def _parts(command: str) -> list[Part] | None:
    """The simple commands, as far as a shell's words go; None where there is more than words, pipes and redirected output."""
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:  # a quote that does not end
        return None
    parts: list[Part] = [(False, [])]
    is_target = False
    for token in tokens:
        words = parts[-1][1]
        if token in BREAKS:
            parts.append((token in ("|", "|&"), []))
            is_target = False
        elif token in REDIRECTIONS:
            if words and words[-1] in ("1", "2"):  # as in `2>&1`
                words.pop()
            is_target = True
        elif token and PUNCTUATION.issuperset(token):
            return None
        elif is_target:
            is_target = False
        else:
            words.append(token)
    return parts


def _has_plain_words(words: list[str]) -> bool:
    """Whether nothing in the words of a run comes from elsewhere; a commit's message may be made in place."""
    is_commit = "git" in words[0] and "commit" in words
    return not any(
        "$" in word and not (is_commit and word.startswith(HERE_TEXT)) or (HIDDEN[1] in word and not is_commit)
        for word in words
    )


# -- what only says how a command is run -------------------------------------------------------------------------------

# of each wrapper the options that take a word, and those that take none
WRAPPERS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "sudo": (names("-u"), names("-E -n -H")),
    "time": (names(""), names("-p")),
    "timeout": (names("-k -s --kill-after --signal"), names("--foreground --preserve-status")),
    "nice": (names("-n"), names("")),
    "stdbuf": (names("-o -e -i"), names("-oL -eL -o0 -e0")),
    "xvfb-run": (names(""), names("-a")),
    "nohup": (names(""), names("")),
    "command": (names(""), names("")),
    "env": (names("-u"), names("")),
    "rtk": (names(""), names("")),
}


def _unwrapped(words: list[str]) -> list[str] | None:
    """The command behind assignments and wrappers; None where a wrapper would print something of its own."""
    words = _without_assignments(words)
    while words and words[0] in WRAPPERS:
        wrapper, words = words[0], words[1:]
        takes, flags = WRAPPERS[wrapper]
        while words and words[0].startswith("-"):
            option = words[0].partition("=")[0]
            if option not in takes and option not in flags:
                return None
            words = words[2:] if words[0] in takes else words[1:]
        if wrapper == "timeout":
            words = words[1:]  # its number
        words = _without_assignments(words)
        if not words:
            return None
    return words


def _without_assignments(words: list[str]) -> list[str]:
    return words[next((i for i, word in enumerate(words) if not ASSIGNED.match(word)), len(words)) :]


# -- what prints nothing, or only what it is given ----------------------------------------------------------------------

QUIET = names("cd pushd popd true : sleep wait mkdir rm cp mv ln touch chmod unset")
SET = re.compile(r"[-+][eufaEB]+|[-+][eufaEB]*o|pipefail|errexit|nounset|allexport")
SOURCED = re.compile(r"(?:.*/)?(?:bin/activate|Scripts/activate|nvm\.sh|\.cargo/env)\Z")
EXPANDED = re.compile(r"[$`*?\[~{]")  # a word that stands for others
# What passes on what it is given: letters of options that take nothing or a number, and how many words it may have.
FILTERS = {
    "cat": ("", 0),
    "head": ("nqcv", 0),
    "tail": ("nqcv", 0),
    "sort": ("nruhfbV", 0),
    "uniq": ("cdui", 0),
    "wc": ("lcwm", 0),
    "tr": ("dsc", 2),
    "tee": ("a", 9),
    "grep": ("ivEFwxnocqaABCmPeh", 1),
    "egrep": ("ivwxnocqaABCmeh", 1),
    "sed": ("nE", 1),
}
SED = re.compile(r"(?:\d+|\$)?(?:,(?:\d+|\$))?[pdq]\Z|s/[^/]*/[^/]*/g?\Z|/[^/]*/[pd]\Z")
LONG = names("--color --colour --line-buffered --text --quiet --count --ignore-case --extended-regexp --lines --unique")


def _is_silent(name: str, words: list[str]) -> bool:
    """Whether a command prints nothing but what the call itself shows."""
    if name in QUIET:
        told = any(re.match(r"--(?:verbose|help|version|changes)|-[A-Za-z]*v", word) for word in words)
        return not told and not any("/dev/" in word or HIDDEN[0] in word or HIDDEN[1] in word for word in words)
    if any(mark in word for mark in HIDDEN for word in words):
        return False
    if name == "echo":
        return not any(EXPANDED.search(word) for word in words)
    if name == "export":
        return bool(words) and all(re.match(r"[A-Za-z_]\w*(?:=|\Z)", word) for word in words)
    if name == "set":
        return bool(words) and all(map(SET.fullmatch, words)) and not words[-1].endswith("o")
    return name in ("source", ".") and len(words) == 1 and SOURCED.match(words[0]) is not None


def _only_filters(name: str, words: list[str]) -> bool:
    """Whether a command behind a pipe passes on what it reads, and brings nothing of a file."""
    if name not in FILTERS:
        return False
    letters, most = FILTERS[name]
    options = [word for word in words if word.startswith("-") and word != "-"]
    others = [word for word in words if word not in options and word != "-"]
    if not all(_is_filter_option(option, letters) for option in options):
        return False
    if re.search("[nABCcm]", letters):  # `-n 5`: the number of the option before
        others = [word for i, word in enumerate(others) if not _is_count(word, words, letters)]
    return len(others) <= most and (name != "sed" or all(map(SED.match, others)))


def _is_filter_option(option: str, letters: str) -> bool:
    return option.partition("=")[0] in LONG or re.fullmatch(rf"-(?:[{letters or '-'}]*[+\d]*)", option) is not None


def _is_count(word: str, words: list[str], letters: str) -> bool:
    """Whether a word is the number of the option before it."""
    before = words[words.index(word) - 1] if words.index(word) else ""
    return word.lstrip("+").isdecimal() and re.fullmatch(r"-\w*[nABCcm]|--lines", before) is not None
