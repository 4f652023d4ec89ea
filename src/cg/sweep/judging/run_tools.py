"""Which commands run tests, builds, linters or version control, and print nothing but how that went.

A known tool with a known subcommand, and no option by which it shows something else: a file, a list, its settings.
What is not known is no run.
"""

import re
from collections.abc import Callable


def names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words of an option, or of a script's name, by which something is shown that the run itself does not say.
_SHOWS = re.compile(r"help|version|list|show|print|dump|collect|explain|trace|describe")  # beginnings
_SHOWN = names(
    "co fixtures markers info generate stdin diff plan dry graph query rules tree init bug eval exec usage data docs "
    "secrets config env report doc"
)
_OPTION_ONLY_IN_NAMES = names(
    "data docs secrets config env report doc"
)  # as options they say what a run reads or writes
_SHORT = names("-h -V -? - --emit")
_TASK = re.compile(
    r"(?:tests?|lint|build|check|fmt|format|typecheck|type-check|compile|vet|clippy|verify)(?:[:\-_][\w:\-]*)?\Z"
)
_SUBCOMMANDS = {
    "cargo": names("test t build b check c clippy fmt nextest"),
    "go": names("test build vet fmt"),
    "dotnet": names("test build"),
    "swift": names("test build"),
    "ruff": names("check format"),
    "biome": names("check lint format ci"),
    "golangci-lint": names("run"),
    "deno": names("test lint check fmt"),
    "bazel": names("test build clean"),
    "meson": names("compile test setup"),
    "mix": names("test compile format"),
    "hatch": names("test fmt build"),
    "poetry": names("check build"),
    "uv": names("build"),
    "pdm": names("build"),
    "bun": names("test"),
}
_CHECKS = names("pytest tox nox jest vitest mocha ctest rspec phpunit")
_CHECKS |= names("mypy pyright flake8 pylint black isort eslint tsc shellcheck stylelint oxlint rubocop rustfmt")
_REFUSED = {  # words that make another command of a check
    "tox": names("l list c config e exec d devenv de depends q quickstart man schema le legacy -l -a"),
    "nox": names("-l"),
    "ctest": names("-N"),
    "vitest": names("list init"),
    "mocha": names("init"),
    "black": names("-c --code"),
    "isort": names("-d"),
    "rubocop": names("-L"),
    "tsc": names("--all"),
}
_NEEDED = {  # without one of these a formatter prints the file
    "prettier": names("--check -c --write -w -l --list-different"),
    "gofmt": names("-l -w"),
    "goimports": names("-l -w"),
}
_SCRIPTS = names("npm pnpm yarn bun")  # `npm test`, `npm run lint`
# Options in front of a subcommand, or of the tool that is run: those that take a word, and those that take none.
_LEADING = names("--prefix -w --workspace -C --dir --cwd --filter -F --project --directory --package --env-file")
_LEADING |= names("--with --extra --group --python -p -W -X")
_FLAGS = names(
    "-s --silent -r --recursive -q --quiet -y --yes --no-install --frozen --no-sync --all-extras --all-groups"
)
_FLAGS |= names("--dev --no-dev --isolated --locked --offline --active --no-project -u -B -I -O -E -P --")
_EXECUTORS = {  # subcommands behind which another tool is run; "": none is needed
    "npx": names(""),
    "bunx": names(""),
    "uvx": names(""),
    "npm": names("exec x"),
    "pnpm": names("exec dlx"),
    "yarn": names("exec dlx"),
    "bun": names("x"),
    "uv": names("run"),
    "poetry": names("run"),
    "pdm": names("run"),
    "pipenv": names("run"),
    "hatch": names("run"),
    "bundle": names("exec"),
    "mise": names("exec x"),
}
# What they run is no script of the project's, but a file, an image or a program that is only called so.
_RUN_PROGRAMS = names(
    "docker podman nerdctl kubectl oc heroku fly conda mamba nix gh op go cargo dotnet swift bazel deno bun uv poetry"
)
_HAS_SCRIPTS = names("pdm hatch pipenv")  # what they run may be a script of the project
_DEEPEST = 4  # tools that run tools


def runs(command: str, words: list[str], depth: int = 0) -> bool:
    """Whether a command with its words prints only how a run went."""
    folder, _, name = command.rpartition("/")
    if (
        depth > _DEEPEST
        or (folder and not re.search(r"(?:\A|/)\.?bin\Z|\A\.\Z", folder))
        or any(map(_is_device, words))
    ):
        return False
    if name == "git":
        return _git_reports(words)
    if name in _NEEDED:
        return bool(_NEEDED[name].intersection(words)) and not _shows(set(words) - _NEEDED[name]) and "-d" not in words
    if _shows(words):
        return False
    if name in _CHECKS:
        return not _REFUSED.get(name, frozenset()).intersection(words)
    if name in _BUILDS:
        return _BUILDS[name](words)
    words = _behind_options(words)
    return bool(words) and (_is_subcommand(name, words) or _executes(name, words, depth) or _runs_task(name, words))


def _is_device(word: str) -> bool:
    return re.search(r"(?:\A|=)/dev/(?!null\Z)", word) is not None


def _shows(words: list[str] | set[str]) -> bool:
    """Whether an option among the words shows something else than the run."""
    for word in words:
        if word in _SHORT:
            return True
        if word.startswith("-") and any(
            _SHOWS.match(part) or part in _SHOWN - _OPTION_ONLY_IN_NAMES for part in _word_parts(word.partition("=")[0])
        ):
            return True
    return False


def _word_parts(word: str) -> list[str]:
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", word)]


def _is_task(word: str) -> bool:
    """Whether a script or target is called after a check or a build."""
    return _TASK.match(word) is not None and not any(_SHOWS.match(one) or one in _SHOWN for one in _word_parts(word))


def _behind_options(words: list[str]) -> list[str]:
    """From the first word on that is no option in front; nothing where one is not known."""
    words = list(words)
    while words and words[0].startswith(("-", "+")):
        option = words[0].partition("=")[0]
        if option == "-m":
            return words
        if option not in _LEADING and option not in _FLAGS and option[0] != "+":  # `cargo +nightly`
            return []
        words = words[2:] if words[0] in _LEADING else words[1:]
    return words


def _is_subcommand(name: str, words: list[str]) -> bool:
    first, behind = words[0], words[1:]
    if first in _SUBCOMMANDS.get(name, frozenset()):
        return first != "nextest" or behind[:1] == ["run"]
    if name in _SCRIPTS and (first in ("test", "t") or (name in ("yarn", "pnpm") and _is_task(first))):
        return True
    if name in (*_SCRIPTS, "mise") and first in ("run", "run-script", "r"):
        script = _behind_options(behind)[:1]
        return bool(script) and _is_task(script[0])
    if name == "deno" and first == "task":
        return behind[:1] != [] and _is_task(behind[0])
    if name == "coverage":
        return first in ("html", "xml", "combine", "erase", "report")
    if name in ("just", "task", "rake"):
        return all(map(_is_task, words))
    if name == "turbo":
        asked = words[1:] if first == "run" else words
        return bool(asked) and all(_is_task(word) or re.match("--(?:filter|force|no-cache)", word) for word in asked)
    return name == "nx" and _is_task(first)


def _runs_task(name: str, words: list[str]) -> bool:
    """`x run test`: runners of a project's scripts are too many to list, and their scripts are called alike."""
    return name not in _RUN_PROGRAMS and words[0] == "run" and len(words) > 1 and _is_task(words[1])


def _executes(name: str, words: list[str], depth: int) -> bool:
    """Whether a tool runs another one that is a run."""
    if re.fullmatch(r"python(?:3(?:\.\d+)?)?", name) or (name == "coverage" and words[0] == "run"):
        words = words[1:] if name == "coverage" else words
        if words[:1] == ["-m"] and len(words) > 1:
            return words[1] == "unittest" or words[1] == "build" or runs(words[1], words[2:], depth + 1)
        return len(words) > 1 and words[0] == "manage.py" and words[1] in ("test", "check")
    subcommands = _EXECUTORS.get(name)
    if subcommands is None:
        return False
    if subcommands:
        if words[0] not in subcommands:
            return False
        words = _behind_options(words[1:])
    if not words or words[0] == "-m":
        return False
    return (name in _HAS_SCRIPTS and _is_task(words[0])) or runs(words[0], words[1:], depth + 1)


# -- builds --------------------------------------------------------------------------------------------------------------

_MAKE = re.compile(r"-(?:j\d*|l\d*|k|s|B|w|i|O)|--(?:jobs|silent|keep-going|no-print-directory|always-make)(?:=\d+)?")
_ASSIGNED = re.compile(r"\w+[:+?]?=")
_TARGETS = names("all clean install")
_CMAKE = re.compile(r"--(?:build|install|target|config|parallel|preset|fresh)(?:=.*)?|-(?:S|B|D|G|j|t|U)\S*|-Wno-dev")
_GOALS = names("clean validate compile test-compile test package verify install integration-test")
_GRADLE = re.compile(
    r"(?:clean|test|build|check|assemble|compile|lint|ktlint|spotless|detekt|jar)(?!Environment)[A-Za-z]*"
)


def _makes(words: list[str]) -> bool:
    options = [word for word in words if word.startswith("-")]
    return all(
        _MAKE.fullmatch(word) or word in ("-C", "-f") or _ASSIGNED.match(word) or _is_target(word, before)
        for before, word in zip(["", *words], words, strict=False)
    ) and not any(option.startswith(("-n", "-p", "-q", "-d")) for option in options)


def _is_target(word: str, before: str) -> bool:
    return before in ("-C", "-f", "-j", "-k") or _is_task(word) or word in _TARGETS


def _cmakes(words: list[str]) -> bool:
    return bool(words) and all(_CMAKE.fullmatch(word) or not word.startswith("-") for word in words)


def _mavens(words: list[str]) -> bool:
    asked = [word for before, word in zip(["", *words], words, strict=False) if before not in ("-pl", "-f", "-T", "-P")]
    asked = [word for word in asked if not word.startswith("-")]
    return bool(asked) and all(word in _GOALS or (":" in word and _is_task(word.rpartition(":")[2])) for word in asked)


def _gradles(words: list[str]) -> bool:
    asked = [word for before, word in zip(["", *words], words, strict=False) if before not in ("--tests", "-p", "-x")]
    asked = [word.rpartition(":")[2] for word in asked if not word.startswith("-")]
    return bool(asked) and all(map(_GRADLE.fullmatch, asked))


def _xcodebuilds(words: list[str]) -> bool:
    return bool(names("build test clean archive analyze build-for-testing test-without-building").intersection(words))


_BUILDS: dict[str, Callable[[list[str]], bool]] = {
    "make": _makes,
    "gmake": _makes,
    "ninja": _makes,
    "cmake": _cmakes,
    "mvn": _mavens,
    "mvnw": _mavens,
    "gradle": _gradles,
    "gradlew": _gradles,
    "xcodebuild": _xcodebuilds,
}

# -- version control -----------------------------------------------------------------------------------------------------

_GIT_SETTINGS = re.compile(r"(?:user|color|commit|safe|advice|init|gc)\.[\w.]+=|core\.(?:editor|autocrlf)=")
_GIT_OPTIONS = {  # of each subcommand those by which it only reports
    "status": r"-[sbz]+|--short|--branch|--porcelain(?:=\w+)?|-u\w*|--untracked-files(?:=\w+)?|--ignored|--long",
    "log": r"--oneline|-\d+|-n\d*|--max-count=\d+|--graph|--decorate(?:=\w+)?|--all|--(?:since|until|after|before|author|grep)=.*"
    r"|--no-merges|--merges|--not|--diff-filter=\w+|--first-parent|--reverse|--abbrev-commit|--no-color|--color(?:=\w+)?|--date=\S+|--follow|--no-decorate"
    r"|--(?:format|pretty)=.*|--stat|--shortstat|--name-only|--name-status|--",
    "commit": r"-[amqnsSF]+|--message(?:=.*)?|--all|--amend|--no-edit|--no-verify|--quiet|--(?:author|date|file|fixup)(?:=.*)?"
    r"|--signoff|--allow-empty|--no-gpg-sign|--",
    "add": r"-[Aufv]+|--all|--update|--force|--intent-to-add|-N|--",
    "push": r"-[ufdq]+|--set-upstream|--force|--force-with-lease(?:=.*)?|--tags|--delete|--follow-tags|--no-verify|--quiet|--all",
}


def _git_reports(words: list[str]) -> bool:
    words = list(words)
    while words and words[0].startswith("-"):
        option = words[0].partition("=")[0]
        if option == "-c" and not _GIT_SETTINGS.match(" ".join(words[1:2])):
            return False
        if option not in ("-C", "-c", "--no-pager", "-P", "--git-dir", "--work-tree", "--no-optional-locks"):
            return False
        words = words[2:] if words[0] in ("-C", "-c", "--git-dir", "--work-tree") else words[1:]
    known = _GIT_OPTIONS.get(words[0]) if words else None
    return known is not None and all(re.fullmatch(known, word, re.DOTALL) for word in words[1:] if word.startswith("-"))
