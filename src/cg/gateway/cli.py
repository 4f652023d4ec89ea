"""`cg-proxy`: serve the gateway, run a command behind it, or prove that it works."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cg import __version__
from cg.errors import CgError
from cg.gateway.upstream.base_url import BASE_URL

if TYPE_CHECKING:
    from cg.gateway.settings import Settings
    from cg.sweep.values import Switch

EXIT_REFUSED = 2  # usage, configuration, an address in use, a state that cannot be opened


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 stopped as asked, 2 refused, of `run` the command's own."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = _parser(words[:1] == ["doctor"]).parse_args(words)
        command: Callable[[argparse.Namespace], int] = arguments.command
        return command(arguments)
    except CgError as error:
        print(f"cg-proxy: {error}", file=sys.stderr)
        return EXIT_REFUSED
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "cg":
            raise
        print(f"cg-proxy: {error.name} is not installed; pip install 'cg-context[proxy]'", file=sys.stderr)
        return EXIT_REFUSED


def _parser(is_doctor: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cg-proxy",
        description="Stand between a client and its API, and take spent tool outputs out of what it sends.",
        epilog="exit codes: 0 stopped as asked; 2 refused (usage, configuration, address, state); run: the command's",
    )
    parser.add_argument("--version", action="version", version=f"cg-proxy {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="serve until SIGINT or SIGTERM; open streams are finished first")
    _gateway_arguments(serve, listen="127.0.0.1:8788", log="stderr")
    serve.set_defaults(command=_serve)

    run = commands.add_parser(
        "run",
        help="start a gateway, run a command with ANTHROPIC_BASE_URL set to it, end with the command",
        usage="cg-proxy run [options] -- COMMAND [ARGUMENT ...]",
    )
    # The screen is the command's.
    log = "beside the state, with .log at its end"
    _gateway_arguments(run, listen="a free port of 127.0.0.1", log=log, upstream=f"what {BASE_URL} says, then ")
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND")
    run.set_defaults(command=_run)

    pause = commands.add_parser("pause", help="switch removal off, at once, for every gateway of a state")
    pause.add_argument("--all", action="store_true", help="end what was removed too: originals leave from then on")
    pause.set_defaults(command=_pause)
    resume = commands.add_parser("resume", help="switch removal on again")
    resume.set_defaults(command=_resume)
    config = commands.add_parser("config", help="print the settings in force as JSON; without the token")
    _gateway_arguments(config, listen="127.0.0.1:8788", log="unused")
    config.set_defaults(command=_config)
    for command in (pause, resume):
        command.add_argument("--config", type=Path, metavar="FILE", help="TOML, tables [proxy] and [sweep]")
        command.add_argument("--state", metavar="FILE|URL", help="default: the one that `serve` would use")

    doctor = commands.add_parser("doctor", help="prove routing, cache, lifetime and recovery against the upstream")
    doctor.set_defaults(command=_doctor)
    if is_doctor:  # else its modules are not needed, and words are to come at once
        from cg.gateway.doctor.command import add_arguments

        add_arguments(doctor)
    return parser


def _gateway_arguments(parser: argparse.ArgumentParser, *, listen: str, log: str, upstream: str = "") -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", help=f"default: {listen}")
    parser.add_argument("--upstream", metavar="URL", help=f"default: {upstream}https://api.anthropic.com")
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML, tables [proxy] and [sweep]")
    parser.add_argument("--preset", metavar="NAME", help="quiet (default), cold, paid or classic")
    parser.add_argument(
        "--state",
        metavar="FILE|URL",
        help="default: a file under the user's state directory, mode 0600; redis://, rediss:// or unix:// of a server"
        " that several gateways share",
    )
    parser.add_argument("--token-file", metavar="FILE", help="needed to listen on other than a loopback address")
    parser.add_argument("--observe", action="store_true", default=None, help="change nothing, only project")
    parser.add_argument("--log", default="info", metavar="LEVEL", help="debug, info (default), warning or error")
    parser.add_argument("--log-file", type=Path, metavar="FILE", help=f"default: {log}")


def _serve(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments, {})
    from cg.gateway.serve import launch
    from cg.gateway.telemetry import json_logs

    with json_logs.opened(arguments.log_file) as stream:
        json_logs.configure(arguments.log, stream)
        return launch.serve_until_stopped(settings, _say)


def _run(arguments: argparse.Namespace) -> int:
    command = arguments.argv[1:] if arguments.argv[:1] == ["--"] else arguments.argv
    if not command:
        raise CgError("run needs a command: cg-proxy run -- claude")
    # A port of its own, so that several can run; before what the command would have used, be that another gateway.
    settings = _settings(arguments, {"listen": "127.0.0.1:0", "upstream": os.environ.get(BASE_URL) or None})
    from cg.gateway.serve import launch
    from cg.gateway.settings import default_state, in_home
    from cg.gateway.telemetry import json_logs
    from cg.sweep.storage.redis.address import Address

    beside = in_home(default_state(os.environ)) if isinstance(settings.state, Address) else settings.state
    path = arguments.log_file or (beside and beside.with_name(beside.name + ".log"))
    with json_logs.opened(path) as stream:
        json_logs.configure(arguments.log, stream)
        return launch.serve_command(settings, command, os.environ)


def _pause(arguments: argparse.Namespace) -> int:
    from cg.sweep.values import Switch

    return _set_switch(arguments, Switch.PAUSED_ALL if arguments.all else Switch.PAUSED)


def _resume(arguments: argparse.Namespace) -> int:
    from cg.sweep.values import Switch

    return _set_switch(arguments, Switch.ON)


def _set_switch(arguments: argparse.Namespace, switch: "Switch") -> int:
    from cg.sweep.open_store import open_server, open_store
    from cg.sweep.storage.redis.address import Address

    settings = _settings(arguments, {})
    state, config = settings.state, settings.config
    with (
        open_server(state, config)
        if isinstance(state, Address)
        else open_store(str(state), config, must_exist=True) as store
    ):
        store.set_switch(switch)
    _say(f"removal is {switch.value.replace('_', ', ')} in {settings.state}")
    return 0


def _config(arguments: argparse.Namespace) -> int:
    from cg.gateway.settings import in_force

    print(json.dumps(in_force(_settings(arguments, {})), indent=1))
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from cg.gateway.doctor import command
    from cg.gateway.telemetry import json_logs

    json_logs.configure("error")
    return command.run(arguments, os.environ)


def _settings(arguments: argparse.Namespace, defaults: Mapping[str, object]) -> "Settings":
    from cg.gateway import settings

    text = None
    if arguments.config is not None:
        try:
            text = arguments.config.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CgError(f"{arguments.config}: cannot be read: {type(error).__name__}") from error
    flags = {name: getattr(arguments, name, None) for name in ("listen", "upstream", "state", "token_file", "observe")}
    defaults = {"state": str(settings.default_state(os.environ)), **defaults}
    return settings.load(text, os.environ, flags, getattr(arguments, "preset", None), defaults=defaults)


def _say(line: str) -> None:
    print(f"cg-proxy: {line}", flush=True)  # on stdout: stderr holds one JSON object a line


if __name__ == "__main__":
    sys.exit(main())
