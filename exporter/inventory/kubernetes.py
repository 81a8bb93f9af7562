"""A Kubernetes cluster as an inventory: what nodes can hold, and what pods hold of it."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from exporter.cluster import RESOURCES, Inventory, Node, Priority, Resources, States
from exporter.inventory.kept import InventoryError
from exporter.inventory.static import Declared, request_of
from exporter.kubernetes.client import KubernetesError, Query, require
from exporter.kubernetes.facts import (
    NodeFacts,
    PodFacts,
    PodState,
    node_facts,
    pod_facts,
    priority,
)
from exporter.kubernetes.mirror import PACE, Mirror, Pace
from exporter.kubernetes.requests import most
from exporter.planning.state import share_of
from exporter.settings import CardSettings, ClassSettings
from exporter.settings.cluster import KubernetesInventory

PATIENCE_SECONDS = 5.0
"""For which a reading waits for the first lists."""
_HELD = "status.phase!=Succeeded,status.phase!=Failed"


class KubernetesSource:
    """The nodes and pods of one cluster."""

    def __init__(
        self,
        settings: KubernetesInventory,
        pace: Pace = PACE,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """`patience`: seconds for which a reading waits for the first lists.

        Raises InventoryError where the optional package is missing.
        """
        try:
            require()
        except KubernetesError as error:
            raise InventoryError(str(error)) from None
        self._settings = settings
        self._pace = pace
        self._patience = patience
        self._pods: Mirror[PodFacts] | None = None
        self._nodes: Mirror[NodeFacts] | None = None
        self._priorities: Mirror[Priority] | None = None
        self._thread = ThreadPoolExecutor(1, "inventory")

    async def read(self, declared: Declared) -> Inventory:
        """The cluster as it is now. Raises InventoryError while it is not followed."""
        label, gpus = self._settings.model_label, self._settings.gpu_resource
        if self._nodes is None:
            self._nodes = self._mirror("nodes", partial(node_facts, gpu_resource=gpus))
        if self._pods is None:
            reduce = partial(pod_facts, model_label=label, gpu_resource=gpus)
            self._pods = self._mirror("pods", reduce, _HELD)
        # The right to list them is only needed where classes name them.
        if self._priorities is None and any(
            isinstance(one, ClassSettings) for one in declared.classes.values()
        ):
            self._priorities = self._mirror("priorityclasses", priority)
        mirrors = [one for one in (self._nodes, self._pods, self._priorities) if one is not None]
        await self._first(mirrors)
        failures = [one.failure for one in mirrors if one.failure is not None]
        if failures:
            raise InventoryError("; ".join(failures))
        if not all(one.listed for one in mirrors):
            raise InventoryError("the first lists are not complete yet")
        priorities = dict(self._priorities.items) if self._priorities is not None else None
        make = partial(
            inventory_of, dict(self._nodes.items), dict(self._pods.items), priorities, declared
        )
        return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    async def close(self) -> None:
        """Ends the watches."""
        for mirror in (self._nodes, self._pods, self._priorities):
            if mirror is not None:
                await mirror.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _mirror(self, kind: str, reduce: Any, field_selector: str | None = None) -> Mirror[Any]:
        query = Query(kind, field_selector=field_selector)
        return Mirror(self._settings, query, reduce, pace=self._pace)

    async def _first(self, mirrors: list[Mirror[Any]]) -> None:
        try:
            async with asyncio.timeout(self._patience):
                for one in mirrors:
                    await one.tried()
        except TimeoutError:
            return


def inventory_of(
    nodes: Mapping[str, NodeFacts],
    pods: Mapping[str, PodFacts],
    priorities: Mapping[str, Priority] | None,
    declared: Declared,
) -> Inventory:
    """The inventory. Pure.

    A replica holds the more of what its card says and of what its pod asks for.
    """
    others: dict[str, Resources] = defaultdict(Resources)
    placed: dict[str, Counter[str]] = defaultdict(Counter)
    elsewhere: Counter[str] = Counter()
    states: dict[str, Counter[PodState]] = defaultdict(Counter)
    shares = {model: share_of(request_of(model, one)) for model, one in declared.models.items()}
    for pod in pods.values():
        model = pod.model
        if model is not None:
            states[model][pod.state] += 1
        if model is None or pod.state is PodState.DRAINING:
            others[pod.node] += pod.held
            continue
        node = nodes.get(pod.node)
        if node is None or not node.open:
            elsewhere[model] += 1
        elif not _may_be_stopped(pod, declared.models.get(model), priorities, declared):
            elsewhere[model] += 1
            others[pod.node] += pod.held
        else:
            placed[pod.node][model] += 1
            share = shares.get(model, Resources())
            others[pod.node] += most(pod.held, share) - share
    selected = {key for card in declared.models.values() for key in card.node_selector}
    return Inventory(
        nodes=tuple(
            Node(
                name,
                node.allocatable,
                dict(placed.get(name, ())),
                others.get(name, Resources()),
                {key: node.labels[key] for key in selected if key in node.labels},
                node.taints,
            )
            for name, node in sorted(nodes.items())
            if node.open
        ),
        # Of what no node has there is none, and not any amount.
        named=frozenset(RESOURCES),
        states={
            model: _states(counts, declared.models.get(model)) for model, counts in states.items()
        },
        elsewhere=dict(elsewhere),
        priorities=priorities,
    )


def _may_be_stopped(
    pod: PodFacts,
    card: CardSettings | None,
    priorities: Mapping[str, Priority] | None,
    declared: Declared,
) -> bool:
    """Whether the pod has the priority of its model's class, which decides over it."""
    if card is None or card.class_name is None:
        return True
    its = declared.classes[card.class_name]
    if isinstance(its, int) or priorities is None or its.priority_class not in priorities:
        return True
    return pod.priority == priorities[its.priority_class].value


def _states(counts: Counter[PodState], card: CardSettings | None) -> States:
    """In replicas: one that spans nodes is ready when all its parts are."""
    k = card.nodes_per_replica if card is not None else 1
    ready = counts[PodState.READY] // k
    started = (counts[PodState.READY] + counts[PodState.STARTING]) // k
    return States(ready, started - ready, -(-counts[PodState.DRAINING] // k))
