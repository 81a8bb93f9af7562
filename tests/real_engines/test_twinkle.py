"""Twinkle on Ray Serve, with its mock backend: two replicas of two slots each.

For the adapter table the mock backend does all that a real one does, but to refuse an adapter.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.real_engines.conftest import Install
from tests.real_engines.servers import Server, serving
from tests.real_engines.watched import watched
from tests.support.programs import free_port, until

# The first run installs about 3 GB.
pytestmark = pytest.mark.timeout(3600)

MODEL = "tiny"
SLOTS = 2
PREFIX = "/api/v1"
TOKEN = "made-up-token"
LITTLE = {"ray_actor_options": {"num_cpus": 0.1}}


@pytest.fixture(scope="module")
def environment(install: Install) -> Path:
    return install("twinkle-0.5.1")


@dataclass(frozen=True, slots=True)
class Twinkle:
    """A running server of two replicas."""

    server: Server
    state: Path
    dashboard: str
    session: aiohttp.ClientSession

    def read_fully(self) -> dict[str, Any]:
        """Settings of a group that reads all there is."""
        state = {"url": f"file://{self.state}"}
        return {"engine": "twinkle", "state": state, "ray_dashboard": self.dashboard}

    async def opened(self) -> str:
        """A new session of a client."""
        url = f"{self.server.url}{PREFIX}/twinkle/create_session"
        async with self.session.post(url, json={}, headers=_headers("opener")) as response:
            assert response.status == 200, await response.text()
            session: str = (await response.json())["session_id"]
            return session

    async def add(self, session: str, client: str, adapter: str) -> None:
        """Trains one more adapter. A client's adapters go to one replica while that has room."""
        url = f"{self.server.url}{PREFIX}/model/{MODEL}/twinkle/add_adapter_to_model"
        lora = {"r": 8, "target_modules": "all-linear", "_TWINKLE_TYPE_": "LoraConfig"}
        body = {"adapter_name": adapter, "config": json.dumps(lora)}
        headers = _headers(client) | {"X-Twinkle-Session-Id": session}
        async with self.session.post(url, json=body, headers=headers) as response:
            assert response.status == 200, await response.text()

    async def processes(self) -> dict[str, int]:
        """Process numbers of the live replicas, by id."""
        async with self.session.get(f"{self.dashboard}/api/serve/applications/") as response:
            told = await response.json()
        # The gateway answers before the model is deployed.
        application = told["applications"].get(f"models-{MODEL}") or {"deployments": {}}
        return {
            replica["replica_id"]: replica["pid"]
            for deployment in application["deployments"].values()
            for replica in deployment["replicas"]
            if replica["state"] == "RUNNING"
        }


def _headers(client: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {TOKEN}",
        "x-request-id": client,
        "serve_multiplexed_model_id": client,
    }


@contextlib.asynccontextmanager
async def twinkle(environment: Path, folder: Path) -> AsyncIterator[Twinkle]:
    """Ray, and the server on it with a state file; both answer."""
    port, ray_port, dashboard_port = free_port(), free_port(), free_port()
    state = folder / "state" / "state.json"
    state.parent.mkdir()
    device = {"name": "model", "ranks": 1, "device_type": "CPU"}
    model = {
        "model_id": MODEL,
        "backend": "mock",
        "max_loras": SLOTS,
        "device_group": device,
        "device_mesh": {"device_type": "CPU", "dp_size": 1},
    }
    config = {
        "http_options": {"host": "127.0.0.1", "port": port},
        "persistence": {"mode": "file", "file_path": str(state)},
        "applications": [
            {
                "name": "server",
                "route_prefix": PREFIX,
                "import_path": "server",
                "args": {"supported_models": [{"model_name": MODEL}]},
                "deployments": [{"name": "GatewayServer", **LITTLE}],
            },
            {
                "name": f"models-{MODEL}",
                "route_prefix": f"{PREFIX}/model/{MODEL}",
                "import_path": "model",
                "args": model,
                "deployments": [{"name": "ModelManagement", "num_replicas": 2, **LITTLE}],
            },
        ],
    }
    file = folder / "server.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    variables = {
        "PATH": f"{environment}:{os.environ['PATH']}",
        "RAY_ADDRESS": f"127.0.0.1:{ray_port}",
        "RAY_USAGE_STATS_ENABLED": "0",
        "HF_HUB_OFFLINE": "1",
    }
    ray = (
        *(str(environment / "ray"), "start", "--head", "--block", "--num-cpus", "8"),
        *("--node-ip-address", "127.0.0.1", "--port", str(ray_port)),
        *("--include-dashboard", "true", "--dashboard-host", "127.0.0.1"),
        *("--dashboard-port", str(dashboard_port)),
    )
    launch = (str(environment / "twinkle-server"), "launch", "--config", str(file))
    dashboard = f"http://127.0.0.1:{dashboard_port}"
    url = f"http://127.0.0.1:{port}"
    async with (
        serving(dashboard, folder, *ray, environment=variables) as head,
        aiohttp.ClientSession() as session,
    ):
        await head.answers("/api/version", 120)
        async with serving(url, folder, *launch, environment=variables) as server:
            await server.answers(f"{PREFIX}/twinkle/healthz", 300)
            made = Twinkle(server, state, dashboard, session)

            async def both_run() -> bool:
                return len(await made.processes()) == 2

            await until(both_run, 300)
            yield made


async def test_replicas_register_fill_up_and_leave_ghosts(
    environment: Path, tmp_path: Path
) -> None:
    async with (
        twinkle(environment, tmp_path) as it,
        watched(it.server.url) as gateway,
        watched(it.server.url, **it.read_fully()) as exporter,
    ):
        # Nobody asked a replica for anything yet: the total says 0 of 0, which is no number.
        cold = await gateway.shows(lora_target_up=1, slots=[])
        assert cold.info()["engine"] == "twinkle"
        assert cold.info()["source"] == "gateway"
        assert cold.info()["slot_kind"] == "exclusive"
        seen = await exporter.shows(lora_target_up=1, lora_target_ghosts=0)
        replicas = set(await it.processes())
        assert {sample.labels["replica_id"] for sample in seen.of("lora_replica_info")} == replicas
        assert {sample.labels["source"] for sample in seen.of("lora_replica_info")} == {"state+ray"}
        assert seen.of("lora_max") == []

        session = await it.opened()
        await it.add(session, "client-1", "first")
        await gateway.shows(slots=[(SLOTS, 1, SLOTS - 1)])
        seen = await exporter.shows(states={"first": "active"}, slots=[(SLOTS, 1, SLOTS - 1)])
        (busy,) = (sample.labels["replica_id"] for sample in seen.of("lora_used"))
        assert busy in replicas

        await it.add(session, "client-1", "second")
        await exporter.shows(states=dict.fromkeys(("first", "second"), "active"))
        await it.add(session, "client-2", "third")
        seen = await exporter.shows(
            states=dict.fromkeys(("first", "second", "third"), "active"), lora_target_up=1
        )
        free = {sample.labels["replica_id"]: sample.value for sample in seen.of("lora_free")}
        assert free == {busy: 0, (replicas - {busy}).pop(): SLOTS - 1}
        await gateway.shows(slots=[(2 * SLOTS, 3, 1)])

        os.kill((await it.processes())[busy], signal.SIGKILL)
        seen = await exporter.shows(240, lora_target_ghosts=3, slots=[(SLOTS, 1, SLOTS - 1)])
        assert busy not in {s.labels["replica_id"] for s in seen.of("lora_replica_info")}
        # What the gateway goes on saying for ever, and why the state is worth reading.
        await gateway.shows(slots=[(2 * SLOTS, 3, 1)])

        text = "\n".join([str(await exporter.now()), str(exporter.process.log)])
        assert TOKEN not in text
        assert session not in text
