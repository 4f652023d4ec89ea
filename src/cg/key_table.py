"""A table of configuration keys: what may stand where, and the values in force over several sources."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cg.errors import CgError

MOST_TEXTS = 1000  # of one list
SWITCH_WORDS: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False}


class ConfigError(CgError):
    """A configuration that is refused; the message names the key, where it stands, its unit and its range."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key's rules. A number has a range and a unit, a word has choices, a text is any, a list is one of texts; else it is a switch."""

    name: str
    meaning: str
    unit: str = ""
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    is_whole: bool = True  # of a number: without a fraction
    is_float: bool = False  # of a number: 10.0 is taken for 10
    is_text: bool = False
    is_list: bool = False  # of texts; in a variable they are separated by commas
    scale: int = 1  # from the key's unit to the field's; a number that has one is kept without a fraction
    field: str = ""  # that it sets, where that has another name
    convert: Callable[[Any], object] | None = None  # from a value that may stand there to the field's

    @property
    def range(self) -> str:
        """What may stand there, for people."""
        if self.choices:
            return ", ".join(self.choices)
        if self.unit:
            return f"{self.low:.10g} to {self.high:.10g} {self.unit}"
        if self.is_list:
            return "a list of names or globs"
        return "text" if self.is_text else "true or false"

    @property
    def rule(self) -> str:
        """The range, with what kind of value it is a range of."""
        whole = "a whole number, " if self.unit and self.is_whole else ""
        return whole + ("one of " if self.choices else "") + self.range

    def from_text(self, text: str) -> object:
        """A variable's text in the key's own type; as it is where it is none, to be refused with its words."""
        if self.choices or self.is_text:
            return text
        if self.is_list:
            return [part.strip() for part in text.split(",") if part.strip()]
        if not self.unit:
            return SWITCH_WORDS.get(text.strip().lower(), text)
        try:
            return int(text, 10) if self.is_whole and not self.is_float else float(text)
        except ValueError:
            return text

    def checked(self, value: Any, source: str) -> object:
        """The field's value. Raises ConfigError that names what may stand there."""
        if not self._takes(value):
            raise ConfigError(f"{source}: {self.name} is {_shortened(value)}; it must be {self.rule}")
        if self.scale != 1:
            value = int(float(value) * self.scale)
        elif self.unit and not self.is_whole:
            value = float(value)
        elif self.unit:
            value = int(value)
        elif self.is_list:
            value = tuple(value)
        return value if self.convert is None else self.convert(value)

    def _takes(self, value: Any) -> bool:
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if self.is_text:
            return isinstance(value, str | Path) and bool(str(value))
        if self.is_list:
            is_list = isinstance(value, list | tuple) and len(value) <= MOST_TEXTS
            return is_list and all(isinstance(one, str) and one for one in value)
        if not self.unit:
            return isinstance(value, bool)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if not self.low <= value <= self.high:  # so is what is not a number
            return False
        return not self.is_whole or isinstance(value, int) or (self.is_float and value.is_integer())


class KeyTable:
    """The keys of one TOML table, by name, with the prefix of their variables.

    `not_keys` are variables of the prefix that are read elsewhere. `unknown_key` and `unknown_variable` are the words for
    what is no key; they may name `source`, `name`, `variable` and the `known` ones.
    """

    def __init__(
        self, keys: Iterable[Key], prefix: str, not_keys: frozenset[str], *, unknown_key: str, unknown_variable: str
    ) -> None:
        self._by_name = {key.name: key for key in keys}
        self._prefix, self._not_keys = prefix, not_keys
        self._unknown_key, self._unknown_variable = unknown_key, unknown_variable

    def in_environment(self, env: Mapping[str, str]) -> Iterator[tuple[str, object]]:
        """The variables of the prefix as (key, value). Raises ConfigError for an unknown one."""
        for variable, text in env.items():
            name = variable.removeprefix(self._prefix)
            if name == variable or name in self._not_keys:
                continue
            key = self._by_name.get(name.lower())
            if key is None:
                raise ConfigError(self._words(self._unknown_variable, "environment", name.lower(), variable))
            yield key.name, key.from_text(text)

    def merged(self, sources: Iterable[tuple[str, Mapping[str, object]]]) -> dict[str, Any]:
        """The fields' values; later sources win, and each value of each source is checked. Raises ConfigError."""
        values: dict[str, Any] = {}
        for source, given in sources:
            for name, value in given.items():
                key = self._by_name.get(name)
                if key is None:
                    raise ConfigError(self._words(self._unknown_key, source, name))
                values[key.field or key.name] = key.checked(value, source)
        return values

    def _words(self, words: str, source: str, name: str, variable: str = "") -> str:
        return words.format(source=source, name=name, variable=variable, known=", ".join(self._by_name))


def parsed(text: str) -> dict[str, Any]:
    """All tables of a TOML text. Raises ConfigError."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of more digits than Python reads
        raise ConfigError(f"configuration is not TOML: {error}") from error


def table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    """One table of a file; empty if it is not there. Raises ConfigError for what is none."""
    found = tables.get(name, {})
    if not isinstance(found, dict):
        raise ConfigError(f"'{name}' must be a table: [{name}]")
    return found


def given(values: Mapping[str, object] | None) -> dict[str, object]:
    """Those that are not None: the others were not given."""
    return {name: value for name, value in (values or {}).items() if value is not None}


def _shortened(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        return "a number of over 70 digits"
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
