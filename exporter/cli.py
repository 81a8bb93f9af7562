"""The command line."""

from __future__ import annotations

import argparse
import asyncio
import errno
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ByteSize
from pydantic_settings import CliSettingsSource
from rich.console import Console

from exporter import __version__, capacity, logs, planning_commands, probing
from exporter.demo.run import run_demo
from exporter.discovery.base import DiscoveryError
from exporter.documents import ConfigError
from exporter.fetching.http import TlsError
from exporter.loading import FILE_VARIABLE, load, warnings
from exporter.quantities import show_duration, show_size
from exporter.service import Service
from exporter.settings import Settings

LOG = logging.getLogger(__name__)

_PIPE_WIDTH = 160

_Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status: 0, 1 for what went wrong, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="lora-exporter",
        description="Tells how many LoRA adapter slots each replica has, uses and has free.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_serve(commands)
    _add_check(commands)
    _add_capacity(commands)
    _add_probe(commands)
    planning_commands.add(commands, console)
    _add_demo(commands)
    parsed = parser.parse_args(arguments)
    run: _Command = parsed.run
    try:
        return run(parsed)
    except ConfigError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        hint = ""
        if error.errno == errno.EADDRINUSE:
            hint = "; choose another with --web.listen-address"
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        print(f"lora-exporter: {where}{error.strerror or error}{hint}", file=sys.stderr)
    except KeyboardInterrupt:
        # Before the service took over the signal: there is nothing to bring to an end.
        return 130
    return 1


def _add_serve(commands: Any) -> None:
    parser = commands.add_parser("serve", help="poll the targets and serve their series")
    source = _add_settings(parser)

    def run(parsed: argparse.Namespace) -> int:
        read = _loader(parsed, source)
        settings = read()
        logs.set_up(settings.log.level, settings.log.format)
        if os.geteuid() == 0:
            LOG.warning("running as root; the exporter needs no rights, give it a user of its own")
        asyncio.run(Service(settings, read).run())
        return 0

    parser.set_defaults(run=run)


def _add_check(commands: Any) -> None:
    parser = commands.add_parser("check", help="tell every problem of a configuration file")
    # The second spelling is that of the other commands.
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("config", metavar="CONFIG", type=Path, nargs="?", help="the file")
    given.add_argument(
        "--config.file", dest="config_file", metavar="CONFIG", type=Path, help="the same"
    )

    def run(parsed: argparse.Namespace) -> int:
        file = parsed.config if parsed.config is not None else parsed.config_file
        settings = load(file)
        for warning in warnings(settings):
            print(f"{file}: warning: {warning}", file=sys.stderr)
        targets = sum(len(group.static) for group in settings.targets)
        print(f"{file}: good, {len(settings.targets)} groups and {targets} targets")
        return 0

    parser.set_defaults(run=run)


def _add_capacity(commands: Any) -> None:
    parser = commands.add_parser("capacity", help="read each target once and print the table")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    source = _add_settings(parser)

    def run(parsed: argparse.Namespace) -> int:
        settings = _loader(parsed, source)()
        logs.set_up(settings.log.level, settings.log.format)
        if not any(group.static or group.discovered for group in settings.targets):
            print("lora-exporter: no targets; give --target or --config.file", file=sys.stderr)
            return 1
        return _read_and_print(settings, parsed.json)

    parser.set_defaults(run=run)


def _read_and_print(settings: Settings, as_json: bool) -> int:
    """Reads each target once; 1 where none could be read."""
    try:
        fleet = asyncio.run(capacity.read_once(settings))
    except (TlsError, DiscoveryError) as error:
        print(f"lora-exporter: {error}", file=sys.stderr)
        return 1
    if as_json:
        sys.stdout.buffer.write(capacity.as_json(fleet))
    else:
        capacity.print_table(fleet, console())
    return 0 if any(status.up for status in fleet.targets) else 1


def _add_probe(commands: Any) -> None:
    parser = commands.add_parser("probe", help="read one address once, to try an engine or a map")
    parser.add_argument("url", metavar="URL", help="the address")
    parser.add_argument("--engine", metavar="NAME", help="the engine, which is else found out")
    parser.add_argument(
        "--config.file", dest="config_file", metavar="FILE", type=Path, help="settings in YAML"
    )
    parser.add_argument("--group", metavar="NAME", help="read it as this group of the file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def run(parsed: argparse.Namespace) -> int:
        file = parsed.config_file or os.environ.get(FILE_VARIABLE)
        settings = load(Path(file) if file else None)
        try:
            one = probing.settings_of(settings, parsed.url, parsed.engine, parsed.group)
        except probing.ProbeError as error:
            print(f"lora-exporter: {error}", file=sys.stderr)
            return 1
        logs.set_up(settings.log.level, settings.log.format)
        return _read_and_print(one, parsed.json)

    parser.set_defaults(run=run)


def console() -> Console:
    """Where tables go."""
    # A pipe has no width; the table's own suits a file and grep.
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser("demo", help="watch a simulated fleet")
    parser.add_argument(
        "--web.listen-address",
        dest="listen_address",
        metavar="ADDRESS",
        default=os.environ.get("LORA_EXPORTER_WEB__LISTEN_ADDRESS", "127.0.0.1:10107"),
        help="where to listen (default: %(default)s)",
    )

    def run(parsed: argparse.Namespace) -> int:
        asyncio.run(run_demo(parsed.listen_address))
        return 0

    parser.set_defaults(run=run)


def _add_settings(parser: argparse.ArgumentParser) -> CliSettingsSource[Any]:
    parser.add_argument(
        "--config.file",
        dest="config_file",
        metavar="FILE",
        type=Path,
        help=f"settings in YAML (also ${FILE_VARIABLE})",
    )
    parser.add_argument(
        "--target",
        dest="target",
        metavar="URL",
        action="append",
        default=[],
        help="a target to poll, its engine found out; may be repeated",
    )
    source = CliSettingsSource[Any](
        Settings,
        root_parser=parser,
        cli_kebab_case=True,
        cli_avoid_json=True,
        cli_hide_none_type=True,
        cli_implicit_flags=True,
    )
    for action in parser._actions:
        _word(action)
    return source


def _word(action: argparse.Action) -> None:
    """Shows values in the help as people write them, not as Python's types."""
    section, _, key = action.option_strings[-1].removeprefix("--").partition(".")
    field = Settings.model_fields.get(section)
    model = field.annotation if field is not None else None
    name = key.replace("-", "_")
    if not (
        isinstance(model, type) and issubclass(model, BaseModel) and name in model.model_fields
    ):
        return
    default = model.model_fields[name].default
    if isinstance(default, ByteSize):
        action.metavar, shown = "SIZE", show_size(default)
    elif isinstance(default, float):
        action.metavar, shown = "DURATION", show_duration(default)
    elif isinstance(default, bool) or str(action.metavar).startswith("{"):
        return
    else:
        action.metavar = "N" if isinstance(default, int) else "VALUE"
        return
    action.help = f"{(action.help or '').partition(' (default')[0]} (default: {shown})"


def _loader(parsed: argparse.Namespace, source: CliSettingsSource[Any]) -> Callable[[], Settings]:
    """Reads the settings, again each time it is called."""
    own = ("run", "config_file", "target", "json")
    given = {key: value for key, value in vars(parsed).items() if key not in own}
    flags = dict(source(parsed_args=given)())
    file = parsed.config_file or os.environ.get(FILE_VARIABLE)
    return lambda: load(Path(file) if file else None, flags, parsed.target)
