"""Which calls answer with a log of what ran: tests, builds, linters, version control that reports, task lists.

Such an output says how a moment was; the next run says it anew. A command is a run log only if every part of it that
prints is one: doubt says no, and the output stays as long as any other.
"""

import re
import shlex
from functools import lru_cache


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


TASK_LISTS = _names(
    "todowrite todoread todo_write todo_read taskcreate taskupdate tasklist taskget update_plan updateplan"
)
CHECKS = _names("pytest tox nox jest vitest mocha ctest rspec phpunit unittest")
LINTERS = _names(
    "ruff mypy pyright flake8 pylint black isort eslint prettier biome tsc golangci-lint gofmt goimports shellcheck "
    "clippy rustfmt stylelint oxlint rubocop"
)
BUILDS = _names("make ninja cmake mvn gradle gradlew bazel meson msbuild xcodebuild")
RUNNERS = _names(
    "npm pnpm yarn bun deno npx mise just task poetry uv pdm hatch pipenv cargo go dotnet swift mix bundle rake turbo nx "
    "python python3 node"
)
WRAPPERS = _names("sudo time command nohup env rtk xvfb-run stdbuf nice")  # the words behind them count
TASKS = re.compile(r"(?:tests?|lint|build|check|fmt|format|typecheck|type-check|compile|vet|clippy)(?:[:\-_.]|\Z)")
REPORTS = _names("commit add push status log")  # of git: what they print can be had again
SILENT = _names("cd export set unset true sleep mkdir rm cp mv touch source . pushd popd chmod echo wait")
# What only passes on what it is given, and how many words it takes before one of them is a file of its own.
FILTERS = {"cat": 0, "head": 0, "tail": 0, "less": 0, "sort": 0, "uniq": 0, "wc": 0, "cut": 2, "tr": 2, "tee": 9}
FILTERS |= {"grep": 1, "egrep": 1, "rg": 1, "sed": 1, "awk": 1, "jq": 1}
BREAKS = frozenset(["&&", "||", ";", "|", "&", "|&", ";;"])
REDIRECTIONS = frozenset([">", ">>", "<", ">&", "&>", "<<<"])
HIDDEN = ("$(", "`", "(", ")")  # a command within the command
MOST_CHARS = 4096  # of a command that is looked at; what is longer writes files


def is_run_log(tool: str, command: str | None) -> bool:
    """Whether a call of `tool`, with its shell command if it has one, answers with a log of what ran."""
    if tool.lower() in TASK_LISTS:
        return True
    return command is not None and len(command) <= MOST_CHARS and _is_run(command)


@lru_cache(maxsize=1024)  # 4 MB at the most
def _is_run(command: str) -> bool:
    runs = False
    for is_piped, words in _parts(command):
        if not words:
            continue
        name, behind = words[0].rpartition("/")[2], words[1:]
        is_commit = name == "git" and _git_verb(behind) == "commit"  # its message is often made by `cat`, and not shown
        if not is_commit and any(mark in word for word in words for mark in HIDDEN):
            return False
        if name in SILENT or (is_piped and _only_filters(name, behind)):
            continue
        if not _runs(name, behind):
            return False
        runs = True
    return runs


def _parts(command: str) -> list[tuple[bool, list[str]]]:
    """(whether it reads another's output, its words) of each simple command, as far as a shell's words go."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:  # a quote that does not end
        return []
    parts: list[tuple[bool, list[str]]] = [(False, [])]
    is_target = False
    for token in tokens:
        if token in BREAKS:
            parts.append((token in ("|", "|&"), []))
            is_target = False
        elif is_target:
            is_target = False
        elif token in REDIRECTIONS:
            is_target = True
        elif not _is_prefix(token, parts[-1][1]):
            parts[-1][1].append(token)
    return parts


def _is_prefix(token: str, words: list[str]) -> bool:
    """Whether a word in front of a command says only how it is run."""
    if words == ["timeout"]:  # its number
        words.clear()
        return True
    return not words and (token in WRAPPERS or re.match(r"[A-Za-z_]\w*=", token) is not None)


def _only_filters(name: str, words: list[str]) -> bool:
    """Whether a command behind a pipe passes on what it reads, and brings nothing of a file."""
    own = [word for word in words if not word.startswith("-") and not word.isdecimal()]
    return name in FILTERS and len(own) <= FILTERS[name]


def _runs(name: str, words: list[str]) -> bool:
    if name == "git":
        return _git_verb(words) in REPORTS
    if name in CHECKS or name in LINTERS or name in BUILDS:
        return True
    named = [word for word in words if not word.startswith("-")][:3]
    if name in RUNNERS:
        return any(TASKS.match(word) or word in CHECKS or word in LINTERS for word in named)
    return len(named) > 1 and named[0] == "run" and TASKS.match(named[1]) is not None  # `x run test`, whatever x is


def _git_verb(words: list[str]) -> str:
    """The subcommand behind git's own options."""
    waiting = iter(words)
    for word in waiting:
        if word in ("-C", "-c"):
            next(waiting, None)
        elif not word.startswith("-"):
            return word
    return ""
