"""Recording rules, one file for each topic."""

from __future__ import annotations

from alerts.generator.inputs import Inputs
from alerts.generator.recordings import load, plans, replicas, slots
from alerts.generator.rules import Recording

TOPICS = (slots, replicas, load, plans)


def recordings(inputs: Inputs) -> tuple[Recording, ...]:
    """All of them, in the order in which they depend on each other."""
    return tuple(rule for topic in TOPICS for rule in topic.rules(inputs))
