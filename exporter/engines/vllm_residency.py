"""vLLM's residency: series of builds that tell which adapters sit in a slot.

Wire format: the gauges of open pull requests to vLLM; no release up to 0.32 has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from exporter.engines.prometheus_text import Found, total, whole
from exporter.fleet import AdapterState

LOADED = "vllm:lora_adapter_loaded"
GPU_LOADED = "vllm:num_gpu_loaded_lora_adapters"
GPU_MAX = "vllm:max_gpu_lora_adapters"
CACHED = "vllm:lora_cache_num_adapters"
"""One sample for each tier, of which one is `gpu`."""
RESIDENCY = (LOADED, GPU_LOADED, GPU_MAX, CACHED)


def has_residency(found: Found) -> bool:
    """Whether this build tells which adapters are resident."""
    return any(found[name] for name in RESIDENCY)


@dataclass(frozen=True, slots=True)
class Residency:
    """What builds tell that export residency; None: not told."""

    max: int | None
    resident: int | None
    used: int | None


def read_residency(
    found: Found,
    active: frozenset[str] | None,
    states: dict[str, AdapterState],
    engines: int,
) -> Residency:
    """Reads residency, and moves the `states` of adapters that are resident or offloaded.

    Each engine of a replica has its own slots, and a GPU adapter is listed under `gpu` and counted
    under `cpu` too, so (engine, adapter) pairs of the GPU level are counted, whatever their rank. A
    resident adapter does not wait for a slot.
    """
    resident: set[tuple[str, str]] = set()
    pinned: set[tuple[str, str]] = set()
    for sample in found[LOADED]:
        name = sample.labels.get("adapter_name")
        if not name or not sample.value:
            continue
        if sample.labels.get("level") == "gpu":
            pair = (sample.labels.get("engine", ""), name)
            resident.add(pair)
            if sample.labels.get("pinned", "").lower() in ("true", "1"):
                pinned.add(pair)
            states[name] = AdapterState.IDLE
        else:
            states.setdefault(name, AdapterState.OFFLOADED)
    limit = whole(total(found[GPU_MAX]))
    if limit is not None and all("engine" not in sample.labels for sample in found[GPU_MAX]):
        limit *= engines
    if not found[LOADED]:
        # Which label names the tier differs between the drafts; its value does not.
        in_gpu = [one for one in found[CACHED] if "gpu" in one.labels.values()]
        return Residency(limit, whole(total(found[GPU_LOADED] or in_gpu)), None)
    if active is None:
        return Residency(limit, len(resident), None)
    held = {pair for pair in resident if pair[1] in active} | pinned
    unlisted = active - {name for _, name in resident}
    return Residency(limit, len(resident), len(held) + len(unlisted))
