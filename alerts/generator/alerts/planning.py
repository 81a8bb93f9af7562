"""What the alerts on plans share."""

from __future__ import annotations

from alerts.generator.alerts.common import kept, latest
from alerts.generator.rules import Clause, Context


def more(context: Context) -> str:
    """Replicas that the load needs beyond the current ones."""
    needed, current = (
        latest(f"model:lora_{n}_replicas:max", context) for n in ("needed", "current")
    )
    return f"{needed} - {current} > 0"


def runs(context: Context) -> Clause:
    """Not scaled to zero, which somebody did on purpose."""
    current = latest("model:lora_current_replicas:max", context)
    return Clause("and", f"{context.scope.on('model')} {current} > 0")


def fits(value: int, context: Context, operator: str = "and") -> Clause:
    """Whether what is needed fits, by stopping others if need be."""
    told = kept("lora_model_fits", "", context)
    return Clause(operator, f"{context.scope.on('model')} {told} == {value}")


def quota_stops(operator: str, context: Context) -> Clause:
    """Whether the owner's quota is among what stops it."""
    blocked = kept("lora_model_blocked", 'reason="quota"', context)
    return Clause(operator, f"{context.scope.on('model')} {blocked} == 1")
