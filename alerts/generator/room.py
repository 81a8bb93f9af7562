"""What a person must know who wants to start replicas: how many fit, and whose would go.

Asked when the text is made, as an alert has one value only. Where nobody plans, nothing is said.
"""

from __future__ import annotations

from alerts.generator.inputs import Inputs
from alerts.generator.promql import Scope


def room(inputs: Inputs) -> str:
    """A template that follows a description: a sentence, or nothing."""
    free = _query(inputs, "lora_model_headroom_replicas", 'room="free"')
    stopping = _query(inputs, "lora_model_headroom_replicas", 'room="preempting"', compare=" > 0")
    victims = _query(inputs, "lora_model_would_preempt_replicas", "", "victim", compare=" > 0")
    blocked = _query(inputs, "lora_model_blocked", "", "reason", compare=" == 1")
    listed = "{{ range $n, $one := . }}{{ if $n }},{{ end }} "
    return (
        f"{{{{ with {free} }}}} {_NUMBER} {_FITS} in what is free"
        f"{{{{ with {stopping} }}}}, {_NUMBER} more by stopping others{{{{ end }}}}"
        f'{{{{ with {victims} | sortByLabel "victim" }}}}; for what is needed{listed}'
        "{{ $one.Value | humanize }} of {{ $one.Labels.victim }}{{ end }} would be stopped{{ end }}"
        f'{{{{ with {blocked} | sortByLabel "reason" }}}}; not one more because of{listed}'
        "{{ $one.Labels.reason }}{{ end }}{{ end }}.{{ end }}"
    )


_NUMBER = "{{ . | first | value | humanize }}"
_FITS = "more {{ if eq (. | first | value) 1.0 }}replica fits{{ else }}replicas fit{{ end }}"


def _query(inputs: Inputs, series: str, matchers: str, *by: str, compare: str = "") -> str:
    """A pipeline that gives the rows of the alert's model."""
    own = ("model", *inputs.aggregation_labels)
    # The operator's matchers, in the raw string that printf takes for its format.
    scope = Scope((), inputs.matchers.replace("%", "%%").replace("`", r"\x60"))
    wanted = ",".join((*filter(None, (matchers,)), *(f"{label}=%q" for label in own)))
    latest = f"last_over_time({scope.series(series, wanted)}[{inputs.common.dip.value}])"
    labels = " ".join(f"$labels.{label}" for label in own)
    return f"printf `{scope.max_by(latest, *by)}{compare}` {labels} | query"
