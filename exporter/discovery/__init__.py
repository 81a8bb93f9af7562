"""Ways to find targets, one file each, and which of them a group asks for."""

from __future__ import annotations

from exporter.discovery.base import Discovery
from exporter.discovery.dns import Dns
from exporter.discovery.files import Files
from exporter.discovery.http import HttpList
from exporter.discovery.kubernetes import KubernetesTargets
from exporter.discovery.ray import RayServe
from exporter.fetching.http import HttpClient
from exporter.settings import TargetGroup


def discoveries_of(group: TargetGroup, http: HttpClient) -> tuple[Discovery, ...]:
    """What finds targets for the group, besides its static list.

    Raises TlsError for certificate files that cannot be used, DiscoveryError where an optional
    package is missing.
    """
    found: list[Discovery] = []
    if group.file is not None:
        found.append(Files(group.file))
    if group.http is not None:
        found.append(HttpList(group.http, http))
    if group.dns is not None:
        found.append(Dns(group.dns))
    if group.ray is not None:
        found.append(RayServe(group.ray, http))
    if group.kubernetes is not None:
        # One for each namespace, so that one that fails keeps only its own as they were.
        namespaces = group.kubernetes.namespaces or (None,)
        found.extend(KubernetesTargets(group.kubernetes, name) for name in namespaces)
    return tuple(found)
