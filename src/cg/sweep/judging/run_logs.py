"""Which calls answer with a log of what ran: tests, builds, linters, version control that reports, task lists.

Such an output says how a moment was; the next run says it anew. `reference` for the list: what was measured beside the
rule `quiet` (docs/studies). A command is a run log only if every part of it that prints is one: doubt says no.
"""

import re
import shlex
from functools import lru_cache

TASK_LISTS = frozenset(
    [
        "todowrite",
        "todoread",
        "todo_write",
        "todo_read",
        "taskcreate",
        "taskupdate",
        "tasklist",
        "taskget",
        "update_plan",
        "updateplan",
    ]
)
CHECKS = frozenset(["pytest", "tox", "nox", "jest", "vitest", "mocha", "ctest", "rspec", "phpunit", "unittest"])
LINTERS = frozenset(
    [
        "ruff",
        "mypy",
        "pyright",
        "flake8",
        "pylint",
        "black",
        "isort",
        "eslint",
        "prettier",
        "biome",
        "tsc",
        "golangci-lint",
        "gofmt",
        "goimports",
        "shellcheck",
        "clippy",
        "rustfmt",
        "stylelint",
        "oxlint",
        "rubocop",
    ]
)
BUILDS = frozenset(["make", "ninja", "cmake", "mvn", "gradle", "gradlew", "bazel", "meson", "msbuild", "xcodebuild"])
RUNNERS = frozenset(
    [
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "deno",
        "npx",
        "mise",
        "just",
        "task",
        "poetry",
        "uv",
        "pdm",
        "hatch",
        "pipenv",
        "cargo",
        "go",
        "dotnet",
        "swift",
        "mix",
        "bundle",
        "rake",
        "turbo",
        "nx",
        "python",
        "python3",
        "node",
    ]
)
WRAPPERS = frozenset(
    ["sudo", "time", "command", "nohup", "env", "rtk", "xvfb-run", "stdbuf", "nice"]
)  # the words behind them count
TASKS = re.compile(r"(?:tests?|lint|build|check|fmt|format|typecheck|type-check|compile|vet|clippy)(?:[:\-_.]|\Z)")
REPORTS = frozenset(["commit", "add", "push", "status", "log"])  # of git: what they print can be had again
SILENT = frozenset(
    [
        "cd",
        "export",
        "set",
        "unset",
        "true",
        "sleep",
        "mkdir",
        "rm",
        "cp",
        "mv",
        "touch",
        "source",
        ".",
        "pushd",
        "popd",
        "chmod",
        "echo",
        "wait",
    ]
)
FILTERS = frozenset(
    [
        "tail",
        "head",
        "grep",
        "egrep",
        "rg",
        "sort",
        "uniq",
        "wc",
        "tee",
        "sed",
        "awk",
        "cut",
        "tr",
        "less",
        "cat",
        "jq",
        "xargs",
    ]
)
BREAKS = frozenset(["&&", "||", ";", "|", "&", "|&", ";;"])
MOST_CHARS = 4096  # of a command that is looked at; what is longer writes files


def is_run_log(tool: str, command: str | None) -> bool:
    """Whether a call of `tool`, with its shell command if it has one, answers with a log of what ran."""
    if tool.lower() in TASK_LISTS:
        return True
    return command is not None and len(command) <= MOST_CHARS and _is_run(command)


@lru_cache(maxsize=4096)
def _is_run(command: str) -> bool:
    runs = False
    for is_piped, words in _parts(command):
        name = words[0].rpartition("/")[2] if words else ""
        if not words or name in SILENT or (is_piped and name in FILTERS):
            continue
        if not _runs(name, words[1:]):
            return False
        runs = True
    return runs


def _parts(command: str) -> "list[tuple[bool, list[str]]]":
    """(whether it reads another's output, its words) of each simple command; one part of no known name for what the
    shell's own grammar hides."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return [(False, ["?"])]
    parts: list[tuple[bool, list[str]]] = [(False, [])]
    skip = False
    for token in tokens:
        if token in BREAKS:
            parts.append((token in ("|", "|&"), []))
        elif skip:
            skip = False
        elif token in (">", ">>", "<", ">&", "&>", "<<<"):
            skip = True
        elif not _is_prefix(token, parts[-1][1]):
            parts[-1][1].append(token)
    return parts


def _is_prefix(token: str, words: list[str]) -> bool:
    """Whether a word in front of a command says only how it is run."""
    if words[:1] == ["timeout"] and len(words) == 1:  # its number
        words.clear()
        return True
    return not words and (token in WRAPPERS or re.match(r"[A-Za-z_]\w*=", token) is not None)


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
