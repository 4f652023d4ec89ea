"""The command reference, from the parsers that read the command lines."""

import argparse
from collections.abc import Iterator, Mapping

from cg.gateway import cli as proxy
from cg.hints.mcp_server import command as hints_mcp
from cg.hints.shell import arguments as hints
from cg.replay import cli as replay
from cg.sweep import cli as sweep
from docsite.configuration import code, table


def parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command that is installed, by its name."""
    return {
        "cg-hints": hints._parser(),
        "cg-hints mcp": hints_mcp.parser(),
        "cg-sweep": sweep._parser((replay.register,)),
        "cg-proxy": proxy._parser(is_doctor=True),
    }


def subcommands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The commands of a command, if it has any."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def page() -> str:
    """The page, in Markdown."""
    lines = ["# Commands\n", "Made from the parsers that read the command lines; `--help` says the same.\n"]
    for parser in parsers().values():
        lines += [f"## {parser.prog}\n", *_described(parser)]
        words = _words(parser)
        for name, command in subcommands(parser).items():
            lines += [f"### {parser.prog} {name}\n", f"{_sentence(words[name])}\n", *_described(command)]
    return "\n".join(lines)


def _described(parser: argparse.ArgumentParser) -> Iterator[str]:
    if parser.description:
        yield f"{_sentence(parser.description)}\n"
    yield f"```text\n{_usage(parser)}\n```\n"
    rows = [row for action in parser._actions if (row := _row(action))]
    if rows:
        yield table(["argument", "what it does"], rows)
    if parser.epilog:
        yield f"```text\n{parser.epilog.strip()}\n```\n"


def _usage(parser: argparse.ArgumentParser) -> str:
    """The command with its positional arguments. (argparse's own line differs between versions of Python.)"""
    words = [parser.prog, "[options]"]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            words.append("COMMAND ...")
        elif not action.option_strings:
            name = str(action.metavar or action.dest)
            words.append(f"{name} ..." if action.nargs in ("+", "*", argparse.REMAINDER) else name)
    return " ".join(words)


def _row(action: argparse.Action) -> list[str] | None:
    if isinstance(action, argparse._SubParsersAction | argparse._HelpAction) or action.help is argparse.SUPPRESS:
        return None
    if not action.option_strings:
        name = str(action.metavar or action.dest)
    elif action.nargs == 0:
        name = ", ".join(action.option_strings)
    else:
        choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
        name = f"{', '.join(action.option_strings)} {action.metavar or choices}"
    needed = " (required)" if action.required and action.option_strings else ""
    return [code(name), ((action.help or "") % vars(action) if action.help else "") + needed]


def _words(parser: argparse.ArgumentParser) -> Mapping[str, str]:
    """What `--help` says of each command in one line."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {choice.dest: choice.help or "" for choice in action._choices_actions}
    return {}


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
