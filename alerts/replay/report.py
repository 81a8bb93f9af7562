"""The figures as the page shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from alerts.replay.judge import (
    ANNOUNCE,
    IN_TIME,
    NEVER,
    RULES,
    Firings,
    false_forecasts,
    lead_minutes,
    verdicts,
)
from alerts.replay.truth import BUILDS, SIZES, Exhaustion, exhaustions, reached_zero
from alerts.replay.world import HOUR, STEP, WEEK, Fleet

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
WANTED_SHARE, WANTED_FALSE = 0.95, 1.0
FOLLOWED = 3
"""Hours."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


class Report:
    """Everything that is told about one replay."""

    def __init__(self, fleet: Fleet, firings: Firings, silent: Sequence[str]) -> None:
        self._fleet, self._firings, self._silent = fleet, firings, silent
        self._weeks = fleet.steps / WEEK
        self._held = [h for h in fleet.histories.values() if h.pool.kind == "exclusive"]
        self.exhaustions = [one for h in self._held for one in exhaustions(h)]
        self._leads = {one: lead_minutes(firings, one) for one in self.exhaustions}

    def share(self, some: Sequence[Exhaustion]) -> float:
        """How many were announced in time, of one."""
        return sum(self._leads[one] >= IN_TIME for one in some) / len(some) if some else 1

    def false_per_week(self) -> float:
        """False forecasts for each model and week."""
        count = sum(
            len(false_forecasts(self._fleet, self._firings, h.pool.name)) for h in self._held
        )
        return count / len(self._held) / self._weeks

    def markdown(self) -> str:
        """The generated part of the page."""
        return "\n\n".join(
            (self._summary(), self._announced(), self._pools(), self._alerts(), self._others())
        )

    def _summary(self) -> str:
        slow = [one for one in self.exhaustions if one.slow]
        models, weeks = len(self._fleet.histories), f"{self._weeks:g}"
        return (
            f"{models} models ({len(self._held)} with held slots), {weeks} weeks, a scrape each "
            f"{STEP} s: {len(self.exhaustions)} exhaustions, {len(slow)} of which built over more "
            "than half an hour.\n\n"
        ) + table(
            ("Wanted", "Measured", ""),
            [
                (
                    f"built over half an hour: announced {IN_TIME} minutes ahead in at least "
                    f"{WANTED_SHARE:.0%}",
                    f"{self.share(slow):.1%} of {len(slow)}",
                    "reached" if self.share(slow) >= WANTED_SHARE else "**not reached**",
                ),
                (
                    f"at most {WANTED_FALSE:g} false forecast for each model and week",
                    f"{self.false_per_week():.2f}",
                    "reached" if self.false_per_week() <= WANTED_FALSE else "**not reached**",
                ),
            ],
        )

    def _announced(self) -> str:
        slow = [one for one in self.exhaustions if one.slow]
        groups: list[tuple[str, list[Exhaustion]]] = [("**all that built slowly**", slow)]
        groups += [
            (f"build: {name}", [one for one in self.exhaustions if one.speed == name])
            for _, name in BUILDS
        ]
        groups += [
            (f"slots: {name}", [one for one in slow if one.size == name]) for _, name in SIZES
        ]
        groups += self._by("noise", slow, lambda one: one.noise)
        groups += self._by("cause", slow, lambda one: one.cause)
        rows = [self._row(name, some) for name, some in groups if some]
        return "### Announced exhaustions\n\n" + table(
            (
                "Class",
                "Cases",
                f"Announced {IN_TIME} min ahead",
                "Not at all",
                "Minutes ahead: median",
                "nine of ten have at least",
                "In time by FillingUp alone",
                "by AlmostExhausted alone",
            ),
            rows,
        )

    @staticmethod
    def _by(
        title: str, some: list[Exhaustion], key: Callable[[Exhaustion], str]
    ) -> list[tuple[str, list[Exhaustion]]]:
        names = sorted({key(one) for one in some})
        return [(f"{title}: {name}", [one for one in some if key(one) == name]) for name in names]

    def _row(self, name: str, some: list[Exhaustion]) -> tuple[object, ...]:
        leads = sorted(self._leads[one] for one in some)
        alone = [
            sum(lead_minutes(self._firings, one, (alert,)) >= IN_TIME for one in some) / len(some)
            for alert in ANNOUNCE
        ]
        return (
            name,
            len(some),
            f"{self.share(some):.0%}",
            leads.count(0),
            f"{median(leads):.0f}",
            f"{leads[len(leads) // 10]:.0f}",
            *(f"{one:.0%}" for one in alone),
        )

    def _pools(self) -> str:
        rows = []
        for history in self._held:
            pool = history.pool
            slow = [one for one in self.exhaustions if one.slow and one.model == pool.name]
            false = len(false_forecasts(self._fleet, self._firings, pool.name))
            fired = sum(
                len(some)
                for labels, some in self._firings["LoraSlotsFillingUp"].items()
                if dict(labels)["model"] == pool.name
            )
            rows.append(
                (
                    pool.name,
                    f"{pool.replicas} x {pool.slots}",
                    fired,
                    false,
                    f"{false / self._weeks:.2f}",
                    len(slow),
                    f"{self.share(slow):.0%}" if slow else "",
                )
            )
        return "### Forecasts by pool\n\n" + table(
            (
                "Pool",
                "Slots",
                "FillingUp fired",
                "False",
                "False per week",
                "Slow exhaustions",
                "Announced",
            ),
            rows,
        )

    def _alerts(self) -> str:
        rows = []
        models = len(self._fleet.histories)
        for one in verdicts(self._fleet, self._firings, self.exhaustions):
            if RULES[one.alert] is NEVER and not one.fired:
                continue
            rows.append(
                (
                    one.alert,
                    one.fired,
                    one.false,
                    f"{one.false / models / self._weeks:.3f}",
                    "" if one.chances is None else f"{one.missed} of {one.chances}",
                    RULES[one.alert].true,
                )
            )
        followed, almost = self._followed()
        return (
            "### Each alert\n\n"
            + table(
                ("Alert", "Fired", "False", "False per model and week", "Missed", "True when"), rows
            )
            + f"\n\nOf the {almost} times that LoraSlotsAlmostExhausted fired, the last slot was "
            f"taken within {FOLLOWED} hours in {followed}."
        )

    def _followed(self) -> tuple[int, int]:
        some = [
            (self._fleet.histories[dict(labels)["model"]], one)
            for labels, several in self._firings["LoraSlotsAlmostExhausted"].items()
            for one in several
        ]
        hits = [reached_zero(h, one.first, one.first + FOLLOWED * HOUR) for h, one in some]
        return sum(hits), len(hits)

    def _others(self) -> str:
        quiet = [a for a, rule in RULES.items() if rule is NEVER and not any(self._fired(a))]
        return (
            f"Replayed, and silent as they should be: {', '.join(quiet)}.\n\n"
            f"Not replayed, as the fleet has no such series: {', '.join(self._silent)}."
        )

    def _fired(self, alert: str) -> Iterable[int]:
        return (len(some) for some in self._firings[alert].values())


def into(page: str, figures: str) -> str:
    """The page with new figures."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"wanted the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}"
