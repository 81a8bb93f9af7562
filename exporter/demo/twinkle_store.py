"""The state file of a simulated Twinkle server.

Format: recorded from Twinkle 0.5.1 in its file mode. `{key: {"value", "expire_at"}}`, mode 0600,
replaced by a rename at each write. Rows of killed replicas stay for ever.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from exporter.demo.scenario import Holding, TwinkleMoment, TwinkleServer

LOG = logging.getLogger(__name__)

WRITE_SECONDS = 1.0
"""Time between two writes."""

_LEADER_SECONDS = 30.0


def entries(
    server: TwinkleServer, moment: TwinkleMoment, now: float, started: float
) -> dict[str, Any]:
    """The file's entries. `now` and `started` (the demo's start): unix seconds."""
    rows: dict[str, Any] = {}

    def put(key: str, value: object, expires: float | None = None) -> None:
        rows[key] = {"value": value, "expire_at": expires}

    put("cleanup_leader", _hex(server.name), now + _LEADER_SECONDS)
    for session in moment.sessions:
        put(
            f"session::{session.id}",
            {
                "tags": [],
                "user_metadata": {},
                "sdk_version": None,
                "created_at": _naive(started + session.since),
                "last_heartbeat": started + session.heartbeat,
            },
        )
    for replica in moment.registered:
        put(f"replica::{replica}::max_loras", server.max_loras)
    for holding in moment.holdings:
        put(f"future::req_{_hex(holding.model_id)}", _future(holding, started))
        put(f"model::{holding.model_id}", _model(holding, started))
    for token, count in Counter(holding.token for holding in moment.holdings).items():
        put(f"token_count::{token}", count)
    return rows


def _future(holding: Holding, started: float) -> dict[str, Any]:
    return {
        "status": "completed",
        "model_id": holding.model_id,
        "reason": None,
        "result": {"status": "ok", "adapter_name": holding.model_id},
        "queue_state": "active",
        "queue_state_reason": None,
        "created_at": _naive(started + holding.since - 0.08),
        "updated_at": _naive(started + holding.since + 0.04),
    }


def _model(holding: Holding, started: float) -> dict[str, Any]:
    return {
        "token": holding.token,
        "session_id": holding.session,
        "model_seq_id": None,
        "base_model": holding.base_model,
        "user_metadata": {"adapter_name": holding.adapter},
        "lora_config": {
            "rank": holding.rank,
            "train_unembed": False,
            "train_mlp": True,
            "train_attn": True,
        },
        "replica_id": holding.replica,
        "created_at": _naive(started + holding.since),
    }


def _hex(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _naive(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


class StateFile:
    """The file, written anew from the scenario."""

    def __init__(
        self, path: Path, server: TwinkleServer, clock: Callable[[], float], started: float
    ) -> None:
        """`clock` and `started` (the demo's start): unix seconds."""
        self.path = path
        self._server = server
        self._clock = clock
        self._started = started

    def write(self) -> None:
        """Writes the present state. Raises OSError."""
        now = self._clock()
        moment = self._server.at(max(now - self._started, 0.0))
        rows = entries(self._server, moment, now, self._started)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=self.path.parent, prefix=self.path.name, delete=False
        ) as stream:
            json.dump(rows, stream)
        Path(stream.name).replace(self.path)

    async def keep_writing(self) -> None:
        """Writes until it is cancelled."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            try:
                self.write()
            except OSError as error:
                LOG.warning("state file not written", extra={"detail": error.strerror})
