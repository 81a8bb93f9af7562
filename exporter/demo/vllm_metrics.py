"""The `/metrics` of a simulated vLLM replica: the families of two releases, in their order.

Wire format: recorded from vLLM 0.32.0 and 0.10.2.post2, whose `vllm:lora_requests_info` differ:
the later one repeats in `waiting_lora_adapters` what runs, and tells no adapter that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from exporter.demo.prometheus import Family, Labels, counter, gauge, histogram, total
from exporter.demo.scenario import STEP, ServingMoment, ServingReplica


@dataclass(frozen=True, slots=True)
class Release:
    """What differs between the releases."""

    tells_waiting: bool
    """Whether adapters that wait are named."""
    has_reasons: bool
    """Whether waiting requests are told by reason."""
    finished_reasons: tuple[str, ...]
    per_token_name: str
    permission_digits: int
    headers: Mapping[str, str]


RELEASES: Mapping[str, Release] = {
    "0.32.0": Release(
        tells_waiting=False,
        has_reasons=True,
        finished_reasons=("stop", "length", "abort", "error", "repetition"),
        per_token_name="vllm:request_time_per_output_token_seconds",  # noqa: S106 - no secret
        permission_digits=16,
        headers={"Vary": "Origin"},
    ),
    "0.10.2.post2": Release(
        tells_waiting=True,
        has_reasons=False,
        finished_reasons=("stop", "length", "abort"),
        per_token_name="vllm:time_per_output_token_seconds",  # noqa: S106 - no secret
        permission_digits=32,
        headers={},
    ),
}

_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
_STEP_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_PER_TOKEN = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0),
)
_LATENCY = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
_TOKENS_PER_BLOCK = 16
_BLOCKS = 27_184
_TOKENS_IN_CACHE = 900
"""Of one running request."""
_TOKENS_PER_STEP = 8
_STARTUP_SECONDS = 41.5
"""From the start of the process to that of the engine."""


def families(replica: ServingReplica, seconds: float, started: float) -> Iterator[Family]:
    """All families, `seconds` after the engine's start at `started` (unix seconds)."""
    release = RELEASES[replica.version]
    moment = replica.at(seconds)
    labels = {"engine": "0", "model_name": replica.model}
    yield from _process(seconds, started)
    yield from _gauges(release, moment, labels)
    yield from _counters(release, moment, labels, started)
    yield from _histograms(release, moment, labels, started)
    lora = lora_samples(replica, seconds, started)
    yield gauge("vllm:lora_requests_info", "Running stats on lora requests.", lora)
    yield _cache_config()


def _process(seconds: float, started: float) -> Iterator[Family]:
    generations = [({"generation": f"{n}"}, value) for n, value in enumerate((31354, 7787, 526))]
    yield total("python_gc_objects_collected_total", "Objects collected during gc", generations)
    version = {"implementation": "CPython", "major": "3", "minor": "12", "patchlevel": "11"}
    info = [({**version, "version": "3.12.11"}, 1.0)]
    yield gauge("python_info", "Python platform information", info)
    for name, text, value in (
        ("process_virtual_memory_bytes", "Virtual memory size in bytes.", 38_233_374_720.0),
        ("process_resident_memory_bytes", "Resident memory size in bytes.", 4_719_624_192.0),
        (
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            round(started - _STARTUP_SECONDS, 2),
        ),
    ):
        yield gauge(name, text, [({}, value)])
    yield total(
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        [({}, round(38.2 + seconds * 1.1, 2))],
    )
    yield gauge("process_open_fds", "Number of open file descriptors.", [({}, 83.0)])


def _gauges(release: Release, moment: ServingMoment, labels: Labels) -> Iterator[Family]:
    yield gauge(
        "vllm:num_requests_running",
        "Number of requests in model execution batches.",
        [(labels, moment.requests_running)],
    )
    yield gauge(
        "vllm:num_requests_waiting",
        "Number of requests waiting to be processed.",
        [(labels, moment.requests_waiting)],
    )
    if release.has_reasons:
        yield gauge(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for "
            "scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, "
            "KV transfer, blocked status). Sum of all reasons equals vllm:num_requests_waiting.",
            [
                ({**labels, "reason": "capacity"}, 0),
                ({**labels, "reason": "deferred"}, moment.requests_waiting),
            ],
        )
        yield gauge(
            "vllm:engine_sleep_state",
            "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is "
            "awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level "
            "2.",
            [
                ({**labels, "sleep_state": "awake"}, 1),
                ({**labels, "sleep_state": "weights_offloaded"}, 0),
                ({**labels, "sleep_state": "discard_all"}, 0),
            ],
        )
    yield gauge(
        "vllm:kv_cache_usage_perc",
        "KV-cache usage. 1 means 100 percent usage.",
        [(labels, moment.requests_running * _TOKENS_IN_CACHE / (_BLOCKS * _TOKENS_PER_BLOCK))],
    )


def _counters(
    release: Release, moment: ServingMoment, labels: Labels, started: float
) -> Iterator[Family]:
    prompt, cached = moment.prompt_tokens, moment.prompt_tokens // 4
    for name, text, value in (
        ("prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.",
         prompt),
        ("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", cached),
        ("num_preemptions", "Cumulative number of preemption from the engine.", 0),
        ("prompt_tokens", "Number of prefill tokens processed.", prompt),
        ("generation_tokens", "Number of generation tokens processed.", moment.generation_tokens),
    ):  # fmt: skip
        yield from counter(f"vllm:{name}_total", text, [(labels, value)], started)
    if release.has_reasons:
        sources = (
            ("local_compute", prompt - cached),
            ("local_cache_hit", cached),
            ("external_kv_transfer", 0),
        )
        yield from counter(
            "vllm:prompt_tokens_by_source_total",
            "Number of prompt tokens by source.",
            [({**labels, "source": source}, value) for source, value in sources],
            started,
        )
    at_length = moment.requests_finished // 6
    finished = {"stop": moment.requests_finished - at_length, "length": at_length}
    yield from counter(
        "vllm:request_success_total",
        "Count of successfully processed requests.",
        [
            ({**labels, "finished_reason": reason}, finished.get(reason, 0))
            for reason in release.finished_reasons
        ],
        started,
    )


def _histograms(
    release: Release, moment: ServingMoment, labels: Labels, started: float
) -> Iterator[Family]:
    """Values are spread around a typical one, from which most are less than a factor away."""
    finished, tokens = moment.requests_finished, moment.generation_tokens
    steps = tokens // _TOKENS_PER_STEP
    rows: tuple[tuple[str, str, Sequence[float], int, float], ...] = (
        ("request_prompt_tokens", "Number of prefill tokens processed.", _TOKENS, finished, 310),
        ("request_generation_tokens", "Number of generation tokens processed.", _TOKENS,
         finished, 190),
        ("iteration_tokens_total", "Histogram of number of tokens per engine_step.", _STEP_TOKENS,
         steps, 14),
        ("request_max_num_generation_tokens",
         "Histogram of maximum number of requested generation tokens.", _TOKENS, finished, 210),
        ("request_params_n", "Histogram of the n request parameter.", (1, 2, 5, 10, 20),
         finished, 0.2),
        ("request_params_max_tokens", "Histogram of the max_tokens request parameter.", _TOKENS,
         finished, 800),
        ("time_to_first_token_seconds", "Histogram of time to first token in seconds.",
         _FIRST_TOKEN, finished, 0.14),
        ("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
         _PER_TOKEN, tokens, STEP),
        (release.per_token_name.removeprefix("vllm:"),
         "Histogram of time_per_output_token_seconds per request.", _PER_TOKEN, finished, STEP),
        ("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", _LATENCY,
         finished, 4.9),
        ("request_queue_time_seconds",
         "Histogram of time spent in WAITING phase for request.", _LATENCY, finished, 0.08),
        ("request_inference_time_seconds",
         "Histogram of time spent in RUNNING phase for request.", _LATENCY, finished, 4.7),
        ("request_prefill_time_seconds",
         "Histogram of time spent in PREFILL phase for request.", _LATENCY, finished, 0.12),
        ("request_decode_time_seconds",
         "Histogram of time spent in DECODE phase for request.", _LATENCY, finished, 4.5),
    )  # fmt: skip
    for name, text, bounds, count, typical in rows:
        yield from histogram(
            f"vllm:{name}", text, labels, bounds, count, _spread(typical), 1.2 * typical, started
        )


def _spread(typical: float) -> Callable[[float], float]:
    """The log-logistic distribution with this median."""
    return lambda bound: 1 / (1 + (typical / bound) ** 2.5)


def lora_samples(
    replica: ServingReplica, seconds: float, started: float
) -> Iterator[tuple[dict[str, str], float]]:
    """The value is when the label set was last true. Names are joined without escaping."""
    release = RELEASES[replica.version]
    for seen in replica.history(seconds):
        running = ",".join(seen.running)
        labels = {
            "max_lora": str(replica.slots),
            "running_lora_adapters": running,
            "waiting_lora_adapters": ",".join(seen.waiting) if release.tells_waiting else running,
        }
        yield labels, started + seen.at


def _cache_config() -> Family:
    labels = {
        "block_size": str(_TOKENS_PER_BLOCK),
        "cache_dtype": "auto",
        "enable_prefix_caching": "True",
        "engine": "0",
        "gpu_memory_utilization": "0.9",
        "is_attention_free": "False",
        "kv_cache_memory_bytes": "None",
        "num_cpu_blocks": "None",
        "num_gpu_blocks": str(_BLOCKS),
        "num_gpu_blocks_override": "None",
        "prefix_caching_hash_algo": "sha256",
        "sliding_window": "None",
    }
    return gauge(
        "vllm:cache_config_info", "Information of the LLMEngine CacheConfig", [(labels, 1.0)]
    )
