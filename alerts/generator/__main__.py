"""Renders the rules, or with --check tells whether they are current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from alerts.generator.inputs import InputError
from alerts.generator.product import HOME, INPUTS, made


def main(arguments: list[str] | None = None) -> int:
    """Writes, or checks; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m alerts.generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    parser.add_argument("--inputs", type=Path, default=INPUTS, help="instead of alerts/inputs.yml")
    parser.add_argument("--output", type=Path, help="a folder for the rules, not alerts/rules")
    options = parser.parse_args(arguments)
    try:
        wanted = made(options.inputs, options.output)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text]
    if options.check:
        for path in stale:
            shown = path.relative_to(HOME.parent) if path.is_relative_to(HOME) else path
            print(f"{shown}: not current; run make alerts", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
