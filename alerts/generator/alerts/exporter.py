"""What the alerts on the exporter share."""

from __future__ import annotations

from alerts.generator.alerts.common import latest
from alerts.generator.rules import Context


def job(context: Context) -> str:
    """The matcher of the exporter's job."""
    return f'job="{context.inputs.exporter_job}"'


def seen_up(context: Context, *labels: str) -> str:
    """1 where it could be scraped, but for a missed scrape, else 0."""
    s, dip = context.scope, context.inputs.common.dip.value
    return s.max_by(f"max_over_time({s.series('up', job(context))}[{dip}])", "job", *labels)


def own(series: str, context: Context, *labels: str) -> str:
    """A series that an exporter tells of itself."""
    told = latest(context.scope.series(series), context)
    return context.scope.max_by(told, "job", "instance", *labels)
