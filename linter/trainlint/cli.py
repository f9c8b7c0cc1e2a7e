"""Arguments in, exit code out: 0 nothing at or above `--fail-on`, 1 findings, 2 the job could not be done."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainlint.errors import TrainlintError

ALLOCATIONS = 100_000
"""New objects after which Python looks for cycles. Trees of files hold none, and the search would take a fifth."""

COMMANDS = ("check", "estimate", "show", "explain", "rules", "formats", "devices", "models", "init")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or (arguments[0] not in COMMANDS and arguments[0] not in ("-h", "--help", "--version")):
        arguments.insert(0, "check")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without the character gets a question mark
    thresholds = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS, *thresholds[1:])
    try:
        options = _parsed(arguments)
        code: int = options.run(options)
        sys.stdout.flush()
    except TrainlintError as error:
        print(f"trainlint: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # the working folder is gone, the disk is full: nothing of ours
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        print(f"trainlint: {where}{(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        gc.set_threshold(*thresholds)
    return code


def _parsed(arguments: list[str]) -> argparse.Namespace:
    """The options; paths may stand before, behind and between flags."""
    if arguments[:2] == ["models", "add"]:
        return _adding().parse_args(arguments[2:])
    parser, commands = _parser()
    if arguments[0] in ("check", "estimate", "show"):
        return commands[arguments[0]].parse_intermixed_args(arguments[1:])
    return parser.parse_args(arguments)


def _parser() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(prog="trainlint", description="Lint machine-learning training configs.")
    parser.add_argument("--version", action="version", version=f"trainlint {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="lint files and folders (the default)")
    _paths(check)
    _about_runs(check)
    check.add_argument(
        "--select", metavar="RULES", action="append", help="only these rules: names, families, globs; with commas"
    )
    check.add_argument("--ignore", metavar="RULES", action="append", help="all but these rules")
    check.add_argument("--severity", metavar="NAME=LEVEL", action="append", default=[], help="another level for a rule")
    check.add_argument("--fail-on", choices=("error", "warning", "info"), help="lowest level that fails (warning)")
    check.add_argument(
        "--output-format", default="text", metavar="FORMAT", help="text, json, github, gitlab, sarif, junit"
    )
    check.add_argument("--output-file", type=Path, metavar="FILE")
    check.add_argument("--fix", action="store_true", help="apply safe fixes")
    check.add_argument("--unsafe-fixes", action="store_true", help="with --fix or --diff: apply unsafe fixes too")
    check.add_argument("--diff", action="store_true", help="show what --fix would change, change nothing")
    check.add_argument("--no-suppressions", action="store_true", help="report what comments silence, for gates")
    check.add_argument("--force-exclude", action="store_true", help="leave out excluded files even if they are named")
    check.add_argument("--no-cache", action="store_true", help="accepted for scripts; nothing is cached")
    check.add_argument("--stdin-filename", metavar="NAME", help="lint standard input under this name")
    check.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever is found")
    check.add_argument("--statistics", action="store_true", help="count the findings of each rule")
    check.add_argument("-v", "--verbose", action="store_true", help="also say what was not judged, and why")
    check.add_argument("-q", "--quiet", action="store_true", help="no summary")
    check.set_defaults(run=_check)
    estimate = commands.add_parser("estimate", help="the memory ledger and verdict of each run")
    _paths(estimate)
    _about_runs(estimate)
    estimate.add_argument("--fit", action="store_true", help="search for changes that fit the device")
    estimate.add_argument("--compare", action="store_true", help="runs and variants side by side")
    estimate.add_argument(
        "--set", metavar="PATH=VALUE", action="append", default=[], help="with another value: batch.micro=1"
    )
    estimate.add_argument(
        "--variant", metavar="VALUES", action="append", default=[], help="compare with batch.micro=1,checkpointing=true"
    )
    estimate.add_argument("--output-format", choices=("text", "json"), default="text")
    estimate.set_defaults(run=_estimate)
    show = commands.add_parser("show", help="each run as resolved: every value, and where it comes from")
    _paths(show)
    _about_runs(show)
    show.add_argument(
        "--only", metavar="PATHS", action="append", default=[], help="only these paths, groups or globs; with commas"
    )
    show.add_argument("--output-format", choices=("text", "json"), default="text")
    show.set_defaults(run=_show)
    explain = commands.add_parser("explain", help="print a rule's page")
    explain.add_argument("name")
    explain.set_defaults(run=_explain)
    for name, what in (
        ("rules", "all rules"),
        ("formats", "the file formats"),
        ("devices", "devices"),
        ("models", "models"),
    ):
        listing = commands.add_parser(name, help=f"list {what}")
        listing.add_argument("pattern", nargs="?", default="", help="only those whose name contains this")
        listing.add_argument("--output-format", choices=("names", "text", "json", "markdown"), default="text")
        listing.set_defaults(run=_list, what=name)
    init = commands.add_parser("init", help="write a commented trainlint.toml after looking at the tree")
    init.add_argument("folder", nargs="?", type=Path, default=Path())
    init.set_defaults(run=_init)
    return parser, commands.choices


def _adding() -> argparse.ArgumentParser:
    """The arguments of `trainlint models add`."""
    parser = argparse.ArgumentParser(
        prog="trainlint models add", description="Fetch a model's config and counts from a hub, for linting offline."
    )
    parser.add_argument("id", metavar="ID", help="the model's id: organisation/name")
    parser.add_argument("--endpoint", metavar="URL", help="the hub (HF_ENDPOINT, else https://huggingface.co)")
    parser.add_argument("--revision", default="main", metavar="NAME", help="branch, tag or commit (main)")
    parser.set_defaults(run=_add)
    return parser


def _paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="files or folders (default: here)")


def _about_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file, instead of the nearest")
    parser.add_argument("--device", metavar="NAME[:COUNT]", help="what the runs run on")
    parser.add_argument("--device-memory", metavar="SIZE", help="memory of one device: 24GiB")
    parser.add_argument("--host-memory", metavar="SIZE", help="RAM of the machine: 64GiB")
    parser.add_argument("--profile", choices=("default", "strict", "teaching"))


def _version() -> str:
    from trainlint import __version__

    return __version__


def _asked(options: argparse.Namespace) -> dict[str, object]:
    """What the command line says of the runs, as settings."""
    from trainlint.run import Value
    from trainlint.units import UnitError, parse

    given: dict[str, object] = {}
    if options.device:
        name, _, count = options.device.rpartition(":")
        if not name or not count.isdigit():
            name, count = options.device, ""
        given["device"] = Value(name, "written", "--device", raw=name)
        if count == "0":
            raise TrainlintError(f"--device `{options.device}` counts no device")
        if not options.device_memory and name.lower() != "cpu":
            _known_device(name)
        if count:
            given["devices"] = Value(int(count), "written", "--device", raw=count)
    for flag in ("device_memory", "host_memory"):
        text = getattr(options, flag)
        if text:
            try:
                size = int(parse(text, "byte"))
                if size <= 0:
                    raise UnitError("a memory is more than nothing")
            except UnitError as error:
                raise TrainlintError(f"--{flag.replace('_', '-')}: {error}") from None
            given[flag] = Value(size, "written", f"--{flag.replace('_', '-')}", raw=text, unit="byte")
    if options.profile:
        given["profile"] = options.profile
    return given


def _known_device(name: str) -> None:
    from trainlint.settings import unknown_device

    if wrong := unknown_device(name):
        raise TrainlintError(f"--device: {wrong}; with --device-memory any name will do")


def _check(options: argparse.Namespace) -> int:
    from trainlint.checking import run_check

    given = _asked(options)
    for name in ("select", "ignore"):
        words = getattr(options, name)
        if words:
            given[name] = tuple(word.strip() for text in words for word in text.split(",") if word.strip())
            if name == "select" and not given[name]:
                raise TrainlintError("--select names no rule")
    if options.severity:
        given["severity"] = dict(_levels(options.severity))
    if options.fail_on:
        given["fail_on"] = options.fail_on
    return run_check(options, given)


def _levels(texts: Sequence[str]) -> list[tuple[str, str]]:
    levels = []
    for text in texts:
        name, _, level = text.partition("=")
        if level not in ("error", "warning", "info"):
            raise TrainlintError(f"--severity is NAME=error, NAME=warning or NAME=info, not `{text}`")
        levels.append((name, level))
    return levels


def _estimate(options: argparse.Namespace) -> int:
    from trainlint.checking import run_estimate

    return run_estimate(options, _asked(options))


def _show(options: argparse.Namespace) -> int:
    from trainlint.checking import run_show

    return run_show(options, _asked(options))


def _explain(options: argparse.Namespace) -> int:
    from trainlint.listing import explain

    print(explain(options.name))
    return 0


def _list(options: argparse.Namespace) -> int:
    from trainlint.listing import listing

    print(listing(options.what, options.pattern, options.output_format))
    return 0


def _add(options: argparse.Namespace) -> int:
    from trainlint.hub import add

    print(add(options.id, options.endpoint, options.revision))
    return 0


def _init(options: argparse.Namespace) -> int:
    from trainlint.initial import write_settings

    print(write_settings(options.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
