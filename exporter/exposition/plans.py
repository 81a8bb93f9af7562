"""Plans -> bytes. Rendered whole after each planning, so that what is gone vanishes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from exporter.catalogue import plans as catalogue
from exporter.catalogue.family import Family
from exporter.catalogue.plans import PLAN_FAMILIES
from exporter.cluster import RESOURCES, Resources
from exporter.exposition.text import number, series
from exporter.planning.overall import Planning, base
from exporter.planning.plans import Plan

Sample = tuple[Family, tuple[str, ...], float | None]
"""Family, label values, value; None: not known, and not rendered."""

UNITS = {"memory": "byte", "cores": "core", "gpus": "integer", "replicas": "integer"}
"""As kube-state-metrics names them."""


def render(planning: Planning, whole_fleet: bool) -> dict[bool, bytes]:
    """The text of all plans: False in the text format, True in OpenMetrics.

    `whole_fleet` False: the exporter sees one replica of many, so that of its models only the
    info is told.
    """
    lines: dict[Family, list[bytes]] = defaultdict(list)
    for family, labels, value in samples(planning):
        if value is not None and (whole_fleet or family is catalogue.MODEL_INFO):
            lines[family].append(series(family, *labels) + number(value))
    return {
        openmetrics: b"".join(
            family.header(openmetrics) + b"".join(lines[family])
            for family in PLAN_FAMILIES
            if family in lines
        )
        for openmetrics in (False, True)
    }


def samples(planning: Planning) -> Iterable[Sample]:
    """Every sample of the plans."""
    for one in planning.models.values():
        yield from _model(one)
        yield catalogue.UNPLACED, (one.model,), planning.unplaced.get(one.model)
    for share in planning.shares:
        labels = (share.owner, share.resource, UNITS[share.resource])
        yield catalogue.OWNER_QUOTA, labels, base(share.resource, share.quota)
        yield catalogue.OWNER_QUOTA_USED, labels, base(share.resource, share.used)
    for node in planning.nodes:
        yield from _node(catalogue.NODE_ALLOCATABLE, node.node, node.allocatable, planning.named)
        yield from _node(catalogue.NODE_FREE, node.node, node.free, planning.named)


def _model(one: Plan) -> Iterable[Sample]:
    card, model = one.card, one.model
    yield catalogue.MODEL_INFO, (model, card.class_name, card.owner), 1
    for state, count in one.states.items():
        yield catalogue.MODEL_REPLICAS, (model, state), count
    for family, value in (
        (catalogue.CURRENT, one.current),
        (catalogue.NEEDED, one.needed),
        (catalogue.SATURATED, one.seen.saturated if one.seen is not None else None),
        (catalogue.DISTINCT_ADAPTERS, one.seen.load.distinct if one.seen is not None else None),
        (catalogue.FITS, one.fits),
        (catalogue.OBSERVED, one.observed),
        (catalogue.TARGET_TOKENS, card.target),
        (catalogue.MIN_REPLICAS, card.min_replicas if one.has_card else None),
        (catalogue.MAX_REPLICAS, card.max_replicas),
    ):
        yield family, (model,), None if value is None else float(value)
    for constraint, replicas in one.needed_by.items():
        if constraint != "minimum" or one.has_card:
            yield catalogue.NEEDED_BY, (model, constraint), replicas
    if one.headroom is not None:
        yield catalogue.HEADROOM, (model, "free"), one.headroom.free
        yield catalogue.HEADROOM, (model, "preempting"), one.headroom.preempting
    for reason in one.blocked:
        yield catalogue.BLOCKED, (model, reason.value), 1
    for victim, count in one.preempted.items():
        yield catalogue.WOULD_PREEMPT, (model, victim), count
    if one.measurement is not None:
        measured = one.measurement
        yield catalogue.MEASURED, (model, measured.profile), measured.tokens_per_second
    for unplanned in one.unplanned:
        yield catalogue.UNPLANNED, (model, unplanned.value), 1


def _node(
    family: Family, node: str, amounts: Resources, named: tuple[str, ...]
) -> Iterable[Sample]:
    for resource in RESOURCES:
        if resource in named:
            labels = (node, resource, UNITS[resource])
            yield family, labels, base(resource, amounts.of(resource))
