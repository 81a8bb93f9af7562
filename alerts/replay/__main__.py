"""`python -m alerts.replay`: replays weeks, and tells how the alerts did."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from alerts.generator import product
from alerts.generator.inputs import load
from alerts.replay import report
from alerts.replay.replay import made_up, replay
from alerts.replay.world import WEEK, pools

PAGE = product.HOME.parent / "docs" / "alerts.md"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m alerts.replay", description=__doc__)
    parser.add_argument("--weeks", type=float, default=4)
    parser.add_argument("--seed", type=int, default=2, help="thresholds were tuned with 1")
    parser.add_argument("--pools", nargs="*", help="only these")
    parser.add_argument("--folder", type=Path, help="keep what was recorded, and take it if there")
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name}")
    asked = parser.parse_args()
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", file=sys.stderr, flush=True)

    some = [one for one in pools() if not asked.pools or one.name in asked.pools]
    fleet = made_up(some, int(asked.weeks * WEEK), asked.seed)
    tell(f"{len(some)} pools made up")
    with tempfile.TemporaryDirectory(prefix="lora-replay-") as temporary:
        folder = asked.folder or Path(temporary) / "replay"
        found = replay(fleet, load(product.INPUTS), folder, tell)
    figures = found.markdown()
    print(figures)
    if asked.write:
        PAGE.write_text(report.into(PAGE.read_text(), figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
