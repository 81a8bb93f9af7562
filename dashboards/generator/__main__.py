"""Writes the dashboards, or with --check tells whether they are current."""

from __future__ import annotations

import argparse
import sys

from dashboards.generator.product import HOME, made


def main(arguments: list[str] | None = None) -> int:
    """Writes, or checks; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m dashboards.generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    options = parser.parse_args(arguments)
    stale = {p: t for p, t in made().items() if not p.exists() or p.read_text() != t}
    for path, text in stale.items():
        if options.check:
            name = path.relative_to(HOME.parent)
            print(f"{name}: not current; run make dashboards", file=sys.stderr)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
