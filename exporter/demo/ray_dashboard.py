"""The dashboard of a simulated Ray cluster: `/api/serve/applications/`.

Format: recorded from Ray 2 under Twinkle 0.5.1, which deploys a gateway and, for each model, an
application with its replicas. Of the deployments' settings some are left out.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from aiohttp import web

from exporter.demo.scenario import TwinkleServer


def dashboard_app(
    server: TwinkleServer, prefix: str, state: Path, started: float
) -> web.Application:
    """The dashboard's server. `prefix`: path of the gateway; `started`: unix seconds."""
    document = _applications(server, prefix, state, started)

    async def applications(request: web.Request) -> web.Response:
        del request
        return web.json_response(document)

    app = web.Application()
    app.router.add_get("/api/serve/applications/", applications)
    return app


def _applications(
    server: TwinkleServer, prefix: str, state: Path, started: float
) -> dict[str, Any]:
    environment = {
        "TWINKLE_PERSISTENCE_MODE": "file",
        "TWINKLE_PERSISTENCE_FILE_PATH": str(state),
    }

    def application(name: str, route: str, deployment: str, replicas: list[str]) -> dict[str, Any]:
        return {
            "name": name,
            "route_prefix": route,
            "docs_path": "/docs",
            "status": "RUNNING",
            "message": "",
            "last_deployed_time_s": started - 60.0,
            "deployed_app_config": None,
            "source": "imperative",
            "deployments": {
                deployment: {
                    "name": deployment,
                    "status": "HEALTHY",
                    "status_trigger": "CONFIG_UPDATE_COMPLETED",
                    "message": "",
                    "deployment_config": {
                        "name": deployment,
                        "max_ongoing_requests": 50,
                        "max_queued_requests": -1,
                        "user_config": None,
                        "graceful_shutdown_wait_loop_s": 2.0,
                        "graceful_shutdown_timeout_s": 20.0,
                        "health_check_period_s": 10.0,
                        "health_check_timeout_s": 30.0,
                        "ray_actor_options": {
                            "runtime_env": {"env_vars": environment},
                            "num_cpus": 0.1,
                        },
                    },
                    "target_num_replicas": len(replicas),
                    "required_resources": {"CPU": 0.1},
                    "replicas": [
                        _replica(name, deployment, replica, n, started)
                        for n, replica in enumerate(replicas)
                    ],
                    "recent_dead_replicas": [],
                }
            },
            "external_scaler_enabled": False,
        }

    model = server.model
    listed = [
        application("server", prefix, "GatewayServer", [_hex(server.name, 8)]),
        application(
            f"models-{model}", f"{prefix}/model/{model}", "ModelManagement", list(server.live)
        ),
        application(
            f"sampler-{model}", f"{prefix}/sampler/{model}", "SamplerManagement", [_hex(model, 8)]
        ),
    ]
    return {
        "controller_info": {
            "node_id": _hex("node 0", 56),
            "node_ip": _node_ip(0),
            "node_instance_id": "",
            "actor_id": _hex("controller", 32),
            "actor_name": "SERVE_CONTROLLER_ACTOR",
            "worker_id": _hex("controller worker", 56),
            "log_file_path": "/serve/controller_2367.log",
        },
        "proxy_location": "HeadOnly",
        "http_options": {"host": "127.0.0.1", "port": 8000},
        "grpc_options": {},
        "proxies": {},
        "applications": {app["name"]: app for app in listed},
        "target_capacity": None,
    }


def _replica(
    application: str, deployment: str, replica: str, number: int, started: float
) -> dict[str, Any]:
    return {
        "node_id": _hex(f"node {number}", 56),
        "node_ip": _node_ip(number),
        "node_instance_id": "",
        "actor_id": _hex(f"actor {replica}", 32),
        "actor_name": f"SERVE_REPLICA::{application}#{deployment}#{replica}",
        "worker_id": _hex(f"worker {replica}", 56),
        "log_file_path": f"/serve/replica_{application}_{deployment}_{replica}.log",
        "replica_id": replica,
        "state": "RUNNING",
        "pid": 2973 + number,
        "start_time_s": started - 59.0,
    }


def _node_ip(number: int) -> str:
    return f"10.20.0.{11 + number}"


def _hex(text: str, digits: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=digits // 2).hexdigest()
