"""Lists of targets in the format of Prometheus: `[{"targets": ["host:port"], "labels": {…}}]`.

Format: https://prometheus.io/docs/prometheus/latest/http_sd/ (file_sd has the same).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from exporter.discovery.base import DiscoveryError, Found
from exporter.settings import normalise_url

_MOST = 100_000
_LONGEST = 1024


def read(data: object) -> tuple[Found, ...]:
    """The targets of a list. Raises DiscoveryError, which names the entry and what is wanted.

    Of the labels, `__scheme__`, `model`, `replica_id`, `node`, `namespace` and
    `pod` are used; an address may also be whole, with its scheme.
    """
    if not isinstance(data, list):
        raise DiscoveryError("wanted a list of {targets, labels}")
    found = list(_all(data))
    if len(found) > _MOST:
        raise DiscoveryError(f"{len(found)} targets; wanted at most {_MOST}")
    return tuple(found)


def _all(data: list[object]) -> Iterable[Found]:
    for number, entry in enumerate(data):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("targets"), list):
            raise DiscoveryError(f"entry {number}: wanted targets, a list")
        labels = entry.get("labels") or {}
        if not isinstance(labels, Mapping) or not all(
            isinstance(text, str) and len(text) <= _LONGEST for text in labels.values()
        ):
            raise DiscoveryError(f"entry {number}: wanted labels, a mapping of short texts")
        for address in entry["targets"]:
            yield Found(
                url=_url(address, labels, number),
                replica=labels.get("replica_id") or None,
                model=labels.get("model") or None,
                node=labels.get("node", ""),
                namespace=labels.get("namespace", ""),
                pod=labels.get("pod", ""),
            )


def _url(address: object, labels: Mapping[str, str], number: int) -> str:
    wanted = f"entry {number}: wanted targets such as 10.0.0.5:8000"
    if not isinstance(address, str) or not address or len(address) > _LONGEST:
        raise DiscoveryError(wanted)
    whole = address if "://" in address else f"{labels.get('__scheme__', 'http')}://{address}"
    try:
        return normalise_url(whole)
    except ValueError:
        # The address may carry a secret, so that it is not shown.
        raise DiscoveryError(wanted) from None
