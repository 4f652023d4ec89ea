"""The configuration reference: every key of [sweep] and [proxy], from the tables that check them."""

import argparse
from collections.abc import Iterable, Mapping, Sequence

from cg.gateway import settings as gateway
from cg.key_table import Key
from cg.sweep import config as sweep

HEAD = """\
# Configuration

Made from the tables that the code checks values with. One TOML file holds both parts; every value is checked where it
enters, and a refusal names the key, its unit and its range. An unknown key is an error.

Flags go over environment over file over preset or default.

```toml
[sweep]
preset = "cold"
keep_newest = 12

[proxy]
listen = "127.0.0.1:8788"
budget_ms = 1500
```

`cg-sweep config --check --config FILE` says whether a file is valid, and `cg-sweep config` prints what is in force.
"""


def page(serve: argparse.ArgumentParser) -> str:
    """The page, in Markdown; `serve` is the gateway's parser, which says what flag a key has."""
    return "\n".join([HEAD, *_sweep(), *_proxy(serve)])


def _sweep() -> Iterable[str]:
    names = sweep.PRESETS
    yield "## `[sweep]`: what is removed, and when\n"
    yield (
        "The preset is named by `--preset`, by `CG_SWEEP_PRESET` or by the file's `preset`; without one it is `paid`."
        " No key has a flag of its own.\n"
    )
    yield table(
        ["key", "what it is", "type", "range", *(f"`{name}`" for name in names), "environment"],
        (
            [
                code(row["key"]),
                row["meaning"],
                type_of(key),
                row["range"],
                *(code(row[name]) for name in names),
                code(row["environment"]),
            ]
            for key, row in zip(sweep.KEYS, sweep.describe(), strict=True)
        ),
    )


def type_of(key: Key) -> str:
    """What TOML calls a value of this key."""
    if key.choices or key.is_text:
        return "string"
    if key.is_list:
        return "array of strings"
    if not key.unit:
        return "boolean"
    return "integer" if key.is_whole else "float"


def _proxy(serve: argparse.ArgumentParser) -> Iterable[str]:
    flags = flags_of(serve)
    yield "## `[proxy]`: the gateway\n"
    yield (
        "The token itself stands in no flag and no file of settings: `token_file` names the file that holds it, or"
        " `CG_PROXY_TOKEN` does. `CG_PROXY_PRESET` names the sweep's preset.\n"
    )
    yield table(
        ["key", "what it is", "type", "range", "default", "environment", "flag"],
        (
            [
                code(key.name),
                key.meaning,
                type_of(key),
                key.rule,
                code(default_of(key)),
                code(gateway.ENVIRONMENT_PREFIX + key.name.upper()),
                code(flags[key.name]) if key.name in flags else "",
            ]
            for key in gateway.KEYS
        ),
    )


def default_of(key: Key) -> str:
    """What holds where nobody says anything, in the key's own unit."""
    if key.name == "state":
        return "$XDG_STATE_HOME/cg/gateway.db"
    value = getattr(gateway.Settings(), key.field or key.name)
    if key.name == "listen":
        return f"{value[0]}:{value[1]}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value / key.scale:g}" if key.unit else str(value or "none")


def flags_of(parser: argparse.ArgumentParser) -> Mapping[str, str]:
    """The long option of each destination."""
    return {action.dest: action.option_strings[-1] for action in parser._actions if action.option_strings}


def code(text: str) -> str:
    return f"`{text}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
