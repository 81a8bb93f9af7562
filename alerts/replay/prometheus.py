"""The real Prometheus over backfilled blocks: recording rules, then the alerts' expressions."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from alerts.generator import render
from alerts.generator.rules import Recording
from alerts.replay.openmetrics import BLOCK, Writer
from alerts.replay.world import START, STEP

Labels = tuple[tuple[str, str], ...]
_RECORDED = re.compile(r"\b[a-z]+:\w+:\w+\b")
_AT_ONCE = 2


class ReplayError(Exception):
    """Prometheus or promtool did not do what was asked."""


def recorded_names(expression: str) -> set[str]:
    """The recorded series that an expression reads."""
    return set(_RECORDED.findall(expression))


def levels(rules: Sequence[Recording], expressions: Iterable[str]) -> list[list[Recording]]:
    """The rules that the expressions need, so that each level reads the ones before it only."""
    names = set().union(*(recorded_names(one) for one in expressions))
    kept: list[Recording] = []
    for rule in reversed(rules):
        if rule.name in names:
            names |= recorded_names(rule.expr())
            kept.append(rule)
    depth: dict[str, int] = {}
    found: list[list[Recording]] = []
    for rule in reversed(kept):
        mine = max((depth[name] + 1 for name in recorded_names(rule.expr())), default=0)
        depth[rule.name] = mine
        found += [[] for _ in range(mine + 1 - len(found))]
        found[mine].append(rule)
    return found


def _promtool(*arguments: str | Path, folder: Path) -> None:
    command = ["promtool", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReplayError(f"{' '.join(command)}: {done.stderr or done.stdout}")


class Server:
    """A folder of blocks, and a Prometheus over it whenever one is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self.empty = not self._data.exists()
        """Whether nothing was backfilled yet."""
        self._data.mkdir(parents=True, exist_ok=True)
        (folder / "prometheus.yml").write_text(f"global: {{evaluation_interval: {STEP}s}}\n")
        self._url = ""

    def backfill(self, writer: Writer) -> None:
        """Series into blocks: promtool works on some pieces while the next one is written."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            waiting: list[Future[None]] = []
            for number, (first, end) in enumerate(writer.pieces()):
                if len(waiting) > _AT_ONCE:
                    waiting.pop(0).result()
                path = self._folder / f"{number}.om"
                writer.write(path, first, end)
                waiting.append(pool.submit(self._to_block, path))
            for one in waiting:
                one.result()

    def _to_block(self, path: Path) -> None:
        out = path.with_suffix(".blocks")
        command = ["tsdb", "create-blocks-from", f"--max-block-duration={BLOCK}s"]
        _promtool(*command, "openmetrics", path, out, folder=self._folder)
        path.unlink()
        self._adopt(out)

    def _adopt(self, out: Path) -> None:
        for block in out.iterdir():
            block.rename(self._data / block.name)
        shutil.rmtree(out)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Prometheus, ready to be asked.

        A series that a scrape lacks is gone at once, as Prometheus then writes a marker, which
        promtool cannot. To look back one interval only comes to the same: there is one scrape in
        it, or none.
        """
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self._url = f"http://{address}"
        command = [
            "prometheus",
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._data}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={address}",
            f"--query.lookback-delta={STEP}s",
            "--query.max-samples=500000000",
            "--query.timeout=10m",
            "--log.level=error",
        ]
        with (self._folder / "prometheus.log").open("a") as log:
            process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
            try:
                self._wait(process)
                yield
            finally:
                process.terminate()
                process.wait(60)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        for _ in range(600):
            if process.poll() is not None:
                log = (self._folder / "prometheus.log").read_text()
                raise ReplayError(f"prometheus ended: {log[-2000:]}")
            try:
                with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        raise ReplayError("prometheus is not ready within a minute")

    def record(self, rules: Sequence[Recording], steps: int) -> None:
        """Evaluates rules over the whole time. What they read must be there already.

        All levels come from one file and one group, so that promtool evaluates them at the same
        moments, as Prometheus evaluates a group.
        """
        group = render.recording_group(rules) | {"interval": f"{STEP}s"}
        path = self._folder / "lora-recording.yml"
        path.write_text(yaml.safe_dump({"groups": [group]}, width=1000))
        end = START + steps * STEP
        half = (START + steps * STEP // 2) // BLOCK * BLOCK
        spans = [(START, half), (half, end)] if half > START else [(START, end)]

        def part(number: int) -> Path:
            out = self._folder / f"recorded-{number}"
            _promtool(
                *("tsdb", "create-blocks-from", f"--max-block-duration={BLOCK}s", "rules"),
                *(f"--start={spans[number][0]}", f"--end={spans[number][1]}"),
                *(f"--eval-interval={STEP}s", f"--output-dir={out}", f"--url={self._url}"),
                "lora-recording.yml",
                folder=self._folder,
            )
            return out

        with self.running(), ThreadPoolExecutor(_AT_ONCE) as pool:
            made = list(pool.map(part, range(len(spans))))
        for out in made:
            self._adopt(out)

    def active(self, expression: str, steps: int, offset: float) -> dict[Labels, list[int]]:
        """At which steps an expression has a result, by the labels of the result."""
        found: dict[Labels, list[int]] = {}
        length = BLOCK // STEP
        for first in range(0, steps, length):
            begin = START + first * STEP + offset
            last = START + (min(first + length, steps) - 1) * STEP + offset
            answer = self._ask("query_range", query=expression, start=begin, end=last, step=STEP)
            for series in answer:
                labels = tuple(sorted(p for p in series["metric"].items() if p[0] != "__name__"))
                at = found.setdefault(labels, [])
                at += [round((when - offset - START) / STEP) for when, _ in series["values"]]
        return found

    def phase(self, name: str) -> float:
        """How many seconds after the scrapes the recording rules are evaluated."""
        when = START + 7200
        answer = self._ask("query", query=f"max(timestamp({name}))", time=when)
        if not answer:
            raise ReplayError(f"nothing was recorded as {name}")
        return float(answer[0]["value"][1]) % STEP

    def _ask(self, path: str, **arguments: str | float) -> list[dict[str, Any]]:
        body = urllib.parse.urlencode(arguments).encode()
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/{path}", body, timeout=600) as answer:
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            raise ReplayError(f"{path}: {error.read().decode()}: {arguments}") from None
        result: list[dict[str, Any]] = document["data"]["result"]
        return result
