"""`/sd`: our targets as Prometheus's `http_sd`, for scraping the engines or our `/probe`.

Format: https://prometheus.io/docs/prometheus/latest/http_sd/
"""

from __future__ import annotations

from urllib.parse import urlsplit

import orjson
from aiohttp import web

from exporter.fleet import Target
from exporter.web.keys import STATE

_PORTS = {"http": 80, "https": 443}


async def handle(request: web.Request) -> web.Response:
    """All targets, or those of `?group=`."""
    group = request.query.get("group")
    targets = request.app[STATE].finding.targets()
    listed = [_entry(target) for target in targets if group is None or target.group == group]
    return web.Response(body=orjson.dumps(listed), content_type="application/json")


def _entry(target: Target) -> dict[str, object]:
    parts = urlsplit(target.url)
    host = parts.hostname or ""
    port = parts.port or _PORTS[parts.scheme]
    labels = {
        "__scheme__": parts.scheme,
        "__metrics_path__": urlsplit(target.metrics_url()).path,
        "__meta_lora_url": target.url,
        "__meta_lora_group": target.group,
        "__meta_lora_engine": target.engine,
        "__meta_lora_model": target.model or "",
        "__meta_lora_replica_id": target.replica or "",
        "__meta_lora_node": target.node,
        "__meta_lora_namespace": target.namespace,
        "__meta_lora_pod": target.pod,
    }
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return {"targets": [address], "labels": labels}
