"""A simulated training service that somebody wrote: it tells of its slots in JSON of its own.

`MAP` is how an operator maps it, as `custom` of a target group.
"""

from __future__ import annotations

from typing import Any

from exporter.demo.pages import Pages
from exporter.demo.scenario import ServingReplica

MAP = {
    "path": "/admin/slots",
    "slot_kind": "exclusive",
    "max": "devices[].slots",
    "used": "devices[].held",
    "active": "jobs{}",
    "waiting": "queue.jobs",
    "prompt_tokens": "tokens.read",
    "generation_tokens": "tokens.written",
    "model": "model",
}
_DEVICES = 2


def inhouse_pages(replica: ServingReplica, started: float) -> Pages:
    """What the service shows. `started`: unix seconds."""

    def slots(seconds: float) -> dict[str, Any]:
        moment = replica.at(seconds)
        held = len(moment.running)
        return {
            "model": replica.model,
            "release": replica.version,
            "up_since": started,
            "devices": [
                {
                    "device": f"cuda:{number}",
                    "slots": replica.slots // _DEVICES,
                    # One device takes a job more where their number is odd.
                    "held": (held + number) // _DEVICES,
                }
                for number in range(_DEVICES)
            ],
            "jobs": {name: {"rank": 16} for name in moment.running},
            "queue": {"jobs": len(moment.waiting)},
            "tokens": {"read": moment.prompt_tokens, "written": moment.generation_tokens},
        }

    return {"/admin/slots": slots}
