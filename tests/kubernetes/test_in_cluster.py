"""A pod's service account: its token, its certificates, and what happens when they change."""

from __future__ import annotations

import asyncio
import gc
import ssl
from pathlib import Path

import pytest
import trustme
from kubernetes_asyncio.config import incluster_config

from exporter.kubernetes.client import Query
from exporter.kubernetes.mirror import Mirror, Pace
from exporter.settings.access import KubernetesAccess
from tests.kubernetes.fake import TOKEN, FakeApi, kubernetes
from tests.kubernetes.objects import pod
from tests.support.programs import until

QUICK = Pace(answer=2.0, first_delay=0.01, longest_delay=0.05, steady=0.2)


def certificate(ca: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    return context


class Account:
    """The files that a pod finds."""

    def __init__(self, folder: Path, ca: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
        self.token = folder / "token"
        self.ca = folder / "ca.crt"
        self.monkeypatch = monkeypatch
        self.token.write_text(TOKEN)
        ca.cert_pem.write_to_path(str(self.ca))
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(self.token))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(self.ca))

    def points_to(self, api: FakeApi) -> None:
        self.monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        self.monkeypatch.setenv("KUBERNETES_SERVICE_PORT", api.address.rpartition(":")[2])


def pods() -> Mirror[str]:
    query = Query("pods")
    return Mirror(KubernetesAccess(), query, lambda one: one["metadata"]["name"], pace=QUICK)


async def test_a_token_that_was_replaced_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = trustme.CA()
    account = Account(tmp_path, ca, monkeypatch)
    async with kubernetes(tls=certificate(ca)) as api:
        account.points_to(api)
        api.put("pods", pod("a"))
        mirror = pods()
        await mirror.tried()
        assert mirror.failure is None
        api.token = "another"
        api.cut()

        async def refused() -> bool:
            return mirror.failure == "pods: status 401; wanted other credentials"

        await until(refused)
        assert mirror.items == {"prod/a": "a"}
        account.token.write_text("another")
        api.put("pods", pod("b"))

        async def followed() -> bool:
            return mirror.failure is None and len(mirror.items) == 2

        await until(followed)
        await mirror.close()


async def test_a_certificate_of_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = trustme.CA()
    account = Account(tmp_path, ca, monkeypatch)
    async with kubernetes(tls=certificate(trustme.CA())) as api:
        account.points_to(api)
        mirror = pods()
        await mirror.tried()
        await mirror.close()
    assert mirror.failure == "pods: no answer (ClientConnectorCertificateError)"
    assert api.requests == []


async def test_it_ends_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca = trustme.CA()
    account = Account(tmp_path, ca, monkeypatch)
    async with kubernetes(tls=certificate(ca)) as api:
        account.points_to(api)
        for steps in range(40):
            mirror = pods()
            for _ in range(steps):
                await asyncio.sleep(0)
            await mirror.close()
        gc.collect()
