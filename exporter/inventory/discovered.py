"""What the fleet adds to the cluster that the settings describe."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from exporter.cluster import Cluster, placed
from exporter.fleet import Fleet


def with_discovered(cluster: Cluster, fleet: Fleet) -> Cluster:
    """The cluster in which each model has as many replicas as placed or discovered, if more.

    A replica that does not answer still holds its capacity, so targets that are down count too, as
    what they were last known to serve.
    """
    found: Counter[str] = Counter()
    for status in fleet.targets:
        models = status.models
        if not models and status.target.model is not None:
            models = (status.target.model,)
        found.update(models)
    current = {model: max(placed(cluster, model), found[model]) for model in cluster.cards}
    return replace(cluster, current=current)
