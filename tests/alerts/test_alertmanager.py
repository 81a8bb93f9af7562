"""The Alertmanager example: it loads, routes, holds back and says what it should."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts.rules_files import HOME, TESTS, alerts, inputs
from tests.alerts.test_lint import known
from tests.support.alertmanager import EXAMPLE, Alertmanager, Message, alertmanager
from tests.support.programs import program, until

QUICK = {"group_wait": "300ms", "group_interval": "300ms"}
EXPORTER = {"LoraExporterDown", "LoraExporterAbsent"}
# Causes and remedies, which a person wants to see beside what they explain, and what stands alone.
TOLD_IN_ANY_CASE = {
    "LoraAdaptersDuplicated",
    "LoraAdaptersDropped",
    "LoraAdaptersNotEverywhere",
    "LoraMaxDisagrees",
    "LoraModelDoesNotFit",
    "LoraModelStopsOthers",
    "LoraModelUnplaced",
    "LoraModelUnplanned",
    "LoraQuotaStopsModel",
    "LoraReplicasLost",
    "LoraSlotsAbandoned",
    "LoraSlotsOrphaned",
    "LoraSlotsOverAllocated",
    "LoraSlotsUnknown",
    # The critical ones of a model.
    "LoraAdaptersWaiting",
    "LoraSlotsExhausted",
}
SINCE = datetime(2026, 3, 3, 2, 12, tzinfo=UTC)


def amtool(*arguments: str) -> tuple[bool, str]:
    """Whether amtool was content, and what it printed."""
    command = [program("amtool"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode == 0, done.stdout


@cache
def example() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return document


def rules() -> list[tuple[set[str], set[str], set[str]]]:
    """Sources, targets and equal labels of the inhibition, by names of alerts."""
    return [
        (_matched(rule["source_matchers"]), _matched(rule["target_matchers"]), set(rule["equal"]))
        for rule in example()["inhibit_rules"]
    ]


def _matched(matchers: list[str]) -> set[str]:
    found = set(alerts())
    for matcher in matchers:
        label, operator, value = re.fullmatch(r'(\w+)(=~|!~|=)"(.*)"', matcher).groups()  # type: ignore[union-attr]
        assert label == "alertname"
        named = {name for name in alerts() if re.fullmatch(value, name)}
        found = found - named if operator == "!~" else found & named
    return found


def test_amtool_accepts_the_example_and_its_template() -> None:
    content, said = amtool("check-config", str(EXAMPLE))
    assert content, said
    assert " - 1 templates\n" in said


PLATFORM_PAGE = "platform-page,platform-chat"


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("LoraSlotsExhausted critical m search", "platform-page,search-chat"),
        ("LoraSlotsExhausted critical m training", "platform-page,training-chat"),
        ("LoraSlotsExhausted critical m", PLATFORM_PAGE),
        ("LoraAdaptersWaiting critical m nobody", PLATFORM_PAGE),
        ("LoraSlotsAlmostExhausted warning m search", "search-chat"),
        ("LoraModelStopsOthers warning m training", "training-chat"),
        ("LoraSlotsOrphaned warning m", "platform-chat"),
        ("LoraSlotsFull info m search", "search-mail"),
        ("LoraSlotsFull info m training", "training-mail"),
        ("LoraSlotsFull info m", "platform-mail"),
        ("LoraExporterDown critical", PLATFORM_PAGE),
        ("LoraTargetDown warning", "platform-chat"),
        ("LoraGhosts info", "platform-mail"),
        ("DiskFull critical m search", "platform-chat"),
    ],
)
def test_routes(labels: str, receivers: str) -> None:
    names = ("alertname", "severity", "model", "owner")
    given = [f"{name}={value}" for name, value in zip(names, labels.split(), strict=False)]
    command = ("config", "routes", "test", f"--config.file={EXAMPLE}", *given)
    assert amtool(*command) == (True, receivers + "\n")


def test_names_that_the_example_uses_are_those_of_alerts() -> None:
    named = set(re.findall(r"Lora[A-Z]\w+", EXAMPLE.read_text()))
    assert named <= set(alerts())


def test_each_alert_is_held_back_or_is_told_in_any_case() -> None:
    _, first_targets, _ = rules()[0]
    assert rules()[0][0] == EXPORTER
    assert first_targets == set(alerts()) - EXPORTER
    weaker = set[str]().union(*(targets for _, targets, _ in rules()[1:]))
    assert weaker | TOLD_IN_ANY_CASE | {"LoraExporterInstanceDown", "LoraTargetDown"} == (
        first_targets
    )
    assert not weaker & TOLD_IN_ANY_CASE


def test_the_readme_tells_what_holds_back_what() -> None:
    readme = (HOME / "README.md").read_text()
    table = readme.partition("<!-- inhibition -->")[2].partition("<!-- end of inhibition -->")[0]
    rows = [line.strip("|").split("|")[:3] for line in table.strip().splitlines()[2:]]
    told = [tuple(set(re.findall(r"\w+", cell)) for cell in row) for row in rows]
    added = set(inputs().aggregation_labels)
    (first, *others) = [(sources, targets, equal - added) for sources, targets, equal in rules()]
    assert told == [(first[0], {"all", "others"}, first[2]), *others]


def test_only_equal_or_greater_severity_holds_back() -> None:
    order = ["info", "warning", "critical"]
    for sources, targets, _ in rules():
        assert sources
        assert targets
        lowest = min(order.index(alerts()[name].severity) for name in sources)
        assert lowest >= max(order.index(alerts()[name].severity) for name in targets)


def test_alerts_have_the_labels_by_which_they_are_compared() -> None:
    """Labels that both sides lack count as equal: without this a rule would hold back too much."""
    added = set(inputs().aggregation_labels)
    for sources, targets, equal in rules():
        assert added <= equal
        own = equal - added
        for source in sources:
            assert own <= labels_of(source), source
        for target in targets if own else ():
            assert own & labels_of(target), target


def labels_of(name: str) -> frozenset[str]:
    return known().labels(alerts()[name].expr())


def alert(
    name: str,
    summary: str = "",
    description: str = "",
    **labels: str,
) -> dict[str, Any]:
    """An alert as Prometheus sends it."""
    texts = {
        "summary": summary,
        "description": description,
        "runbook_url": f"https://runbooks/{name}.md",
        "dashboard_url": f"https://grafana/{name}",
    }
    return {
        "labels": {"alertname": name, **labels},
        "annotations": {key: text for key, text in texts.items() if text},
        "startsAt": SINCE.isoformat(),
    }


ONE = {"cluster": "eu", "model": "tuner"}
REPLICA = ONE | {"replica_id": "r0"}
GATE = {"cluster": "eu", "target": "http://gateway:8000"}
SIDECAR = {"cluster": "eu", "target": "http://localhost:8000", "instance": "10.0.0.5:10107"}


Side = tuple[str, dict[str, str]]
INHIBITION: list[tuple[Side, Side, bool]] = [
    (("LoraExporterDown", {"cluster": "eu"}), ("LoraSlotsExhausted", ONE), True),
    (("LoraExporterDown", {"cluster": "eu"}), ("LoraTargetDown", GATE), True),
    (("LoraExporterDown", {"cluster": "eu"}), ("LoraSlotsFull", ONE), True),
    (("LoraExporterDown", {"cluster": "us"}), ("LoraSlotsExhausted", ONE), False),
    (("LoraExporterAbsent", {"cluster": "eu"}), ("LoraExporterDown", {"cluster": "eu"}), False),
    (("LoraExporterInstanceDown", SIDECAR), ("LoraDataStale", SIDECAR), True),
    (("LoraExporterInstanceDown", SIDECAR), ("LoraTargetDown", SIDECAR), True),
    (("LoraExporterInstanceDown", SIDECAR), ("LoraTargetDown", GATE), False),
    (("LoraTargetDown", GATE), ("LoraGhosts", GATE), True),
    (("LoraTargetDown", GATE), ("LoraGhosts", GATE | {"target": "other"}), False),
    (("LoraSlotsExhausted", ONE), ("LoraSlotsAlmostExhausted", ONE), True),
    (("LoraSlotsExhausted", ONE), ("LoraReplicaLossNotSurvived", ONE), True),
    (("LoraSlotsExhausted", ONE), ("LoraSlotsFillingUp", ONE | {"model": "b"}), False),
    (("LoraSlotsExhausted", ONE), ("LoraSlotsOrphaned", REPLICA), False),
    (("LoraSlotsExhausted", ONE), ("LoraModelStopsOthers", ONE), False),
    (("LoraSlotsExhausted", ONE), ("LoraTargetDown", GATE), False),
    (("LoraSlotsAlmostExhausted", ONE), ("LoraSlotsFillingUp", ONE), True),
    (("LoraAdaptersWaiting", ONE), ("LoraRequestsWaiting", ONE), True),
    (("LoraAdaptersWaiting", ONE), ("LoraReplicaFullOthersFree", REPLICA), True),
    (("LoraAdaptersWaiting", ONE), ("LoraAdaptersDuplicated", ONE), False),
    (("LoraRequestsWaiting", ONE), ("LoraSlotsFull", ONE), True),
    (("LoraRequestsWaiting", ONE), ("LoraAdaptersThrash", REPLICA), False),
    (("LoraReplicasLost", ONE), ("LoraModelNeedsReplicas", ONE), True),
    (("LoraSlotsOrphaned", REPLICA), ("LoraHolderHasMostSlots", REPLICA), True),
    (
        ("LoraSlotsOrphaned", REPLICA),
        ("LoraHolderHasMostSlots", REPLICA | {"replica_id": "r1"}),
        False,
    ),
]


async def test_inhibition(tmp_path: Path) -> None:
    """Each source and target in clusters of their own, so that one Alertmanager tells of all."""
    async with alertmanager(tmp_path) as it:
        posted = []
        for number, sides in enumerate(INHIBITION):
            for side, (name, labels) in zip(("source", "target"), sides[:2], strict=True):
                own = {"cluster": f"{labels['cluster']}{number}", "case": f"{number} {side}"}
                posted.append(alert(name, severity=alerts()[name].severity, **labels | own))
        await it.post(*posted)
        found = await told_inhibited(it, len(posted))
    wrong = [
        sides
        for number, sides in enumerate(INHIBITION)
        if found[f"{number} source"] or found[f"{number} target"] != sides[2]
    ]
    assert not wrong


async def test_inhibition_without_a_cluster(tmp_path: Path) -> None:
    async with alertmanager(tmp_path) as it:
        await it.post(
            alert("LoraExporterDown", case="down"),
            alert("LoraExporterAbsent", case="absent"),
            alert("LoraSlotsExhausted", model="tuner", case="slots"),
            alert("LoraTargetDown", target="http://a:8000", case="target"),
        )
        found = await told_inhibited(it, 4)
    assert found == {"down": False, "absent": False, "slots": True, "target": True}


async def told_inhibited(it: Alertmanager, count: int) -> dict[str, bool]:
    """Whether an alert is held back, by its label `case`."""

    async def all_known() -> bool:
        return len(await it.alerts()) == count

    await until(all_known)
    return {one["labels"]["case"]: bool(one["status"]["inhibitedBy"]) for one in await it.alerts()}


async def told(folder: Path, *posted: dict[str, Any], messages: int) -> list[Message]:
    """The texts that these alerts make."""
    async with alertmanager(folder, **QUICK) as it:
        await it.post(*posted)

        async def all_came() -> bool:
            return len(it.received.messages()) >= messages

        await until(all_came)
        return it.received.messages()


def expected_alerts() -> Iterator[dict[str, Any]]:
    """All alerts that promtool's tests expect, each in a cluster of its own."""
    for test in TESTS:
        for block in yaml.safe_load(test.read_text())["tests"]:
            for case in block.get("alert_rule_test", []):
                for one in case.get("exp_alerts") or []:
                    yield {
                        "labels": one["exp_labels"] | {"alertname": case["alertname"]},
                        "annotations": one["exp_annotations"],
                        "startsAt": SINCE.isoformat(),
                    }


async def test_texts_of_all_alerts_are_whole(tmp_path: Path) -> None:
    posted = list(expected_alerts())
    for number, one in enumerate(posted):
        one["labels"]["cluster"] = f"c{number}"
    assert {one["labels"]["alertname"] for one in posted} == set(alerts())
    # One message for each, and one more to the pager for each critical one.
    critical = sum(one["labels"]["severity"] == "critical" for one in posted)
    messages = await told(tmp_path, *posted, messages=len(posted) + critical)
    for one in posted:
        labels, annotations = one["labels"], one["annotations"]
        (about, *_) = [m for m in messages if f"({labels['cluster']}): " in m.title]
        assert about.title.endswith(f": {annotations['summary']}")
        for wanted in (labels["alertname"], *annotations.values()):
            assert wanted in about.text or wanted == annotations["summary"]
        for label in ("model", "owner", "class"):
            assert labels.get(label, "") in about.title + about.text
    everything = "".join(message.title + message.text for message in messages)
    assert "no value" not in everything
    assert not re.search(r"\(\)|: \n|  |\n\n\n", everything)


EXACT = {
    "exporter": (
        alert(
            "LoraExporterDown",
            "The LoRA exporter is down: nobody sees the slots.",
            "No exporter of job lora (eu) answers.",
            severity="critical",
            job="lora",
            cluster="eu",
        ),
        "[CRITICAL] job lora (eu): The LoRA exporter is down: nobody sees the slots.",
        """\
LoraExporterDown, critical, since Tue 3 Mar 02:12 UTC
No exporter of job lora (eu) answers.
What to do: https://runbooks/LoraExporterDown.md
Look: https://grafana/LoraExporterDown
""",
    ),
    "slots": (
        alert(
            "LoraSlotsExhausted",
            "All LoRA slots of a model are held: new adapters are refused.",
            "tuner (eu): all 10 slots are held. 2 more replicas fit in what is free.",
            severity="critical",
            cluster="eu",
            model="tuner",
            slot_kind="exclusive",
            owner="training",
            **{"class": "gold"},
        ),
        "[CRITICAL] tuner (eu): All LoRA slots of a model are held: new adapters are refused.",
        """\
LoraSlotsExhausted, critical, since Tue 3 Mar 02:12 UTC
tuner (eu): all 10 slots are held. 2 more replicas fit in what is free.
Owner: training, class gold
What to do: https://runbooks/LoraSlotsExhausted.md
Look: https://grafana/LoraSlotsExhausted
""",
    ),
    "cache, without a card and a cluster": (
        alert(
            "LoraRequestsWaiting",
            "Requests wait while the LoRA slots are full.",
            "chat: 4 requests wait on average.",
            severity="warning",
            model="chat",
        ),
        "[WARNING] chat: Requests wait while the LoRA slots are full.",
        """\
LoraRequestsWaiting, warning, since Tue 3 Mar 02:12 UTC
chat: 4 requests wait on average.
What to do: https://runbooks/LoraRequestsWaiting.md
Look: https://grafana/LoraRequestsWaiting
""",
    ),
    "target": (
        alert(
            "LoraTargetDown",
            "A target cannot be read.",
            "http://10.0.0.5:8000 (eu) of group serving has given no adapter table for 15m.",
            severity="warning",
            cluster="eu",
            target="http://10.0.0.5:8000",
            group="serving",
        ),
        "[WARNING] http://10.0.0.5:8000 (eu): A target cannot be read.",
        """\
LoraTargetDown, warning, since Tue 3 Mar 02:12 UTC
http://10.0.0.5:8000 (eu) of group serving has given no adapter table for 15m.
What to do: https://runbooks/LoraTargetDown.md
Look: https://grafana/LoraTargetDown
""",
    ),
    "planning, with a class and no owner": (
        alert(
            "LoraModelStopsOthers",
            "A model gets the replicas that it needs only by stopping another's.",
            "chat needs replicas that fit only by stopping 2 of batch-llm.",
            severity="warning",
            model="chat",
            victim="batch-llm",
            side="gains",
            **{"class": "gold"},
        ),
        "[WARNING] chat: A model gets the replicas that it needs only by stopping another's.",
        """\
LoraModelStopsOthers, warning, since Tue 3 Mar 02:12 UTC
chat needs replicas that fit only by stopping 2 of batch-llm.
Class: gold
What to do: https://runbooks/LoraModelStopsOthers.md
Look: https://grafana/LoraModelStopsOthers
""",
    ),
    "held, by mail": (
        alert(
            "LoraHolderHasMostSlots",
            "One session holds most LoRA slots of a full replica.",
            "tuner: one session holds 60% of the slots of replica r0, which has none free.",
            severity="info",
            model="tuner",
            replica_id="r0",
            owner="search",
        ),
        "[INFO] tuner: One session holds most LoRA slots of a full replica.",
        """\
LoraHolderHasMostSlots, info, since Tue 3 Mar 02:12 UTC
tuner: one session holds 60% of the slots of replica r0, which has none free.
Owner: search
What to do: https://runbooks/LoraHolderHasMostSlots.md
Look: https://grafana/LoraHolderHasMostSlots
""",
    ),
    "bare": (
        {"labels": {"alertname": "LoraGhosts"}, "startsAt": SINCE.isoformat()},
        "[INFO] LoRA capacity: LoraGhosts",
        "LoraGhosts, since Tue 3 Mar 02:12 UTC\nNo description.\n",
    ),
}


@pytest.mark.parametrize("kind", EXACT)
async def test_the_text_of_one_alert(kind: str, tmp_path: Path) -> None:
    posted, title, text = EXACT[kind]
    (first, *_) = await told(tmp_path, posted, messages=1)
    assert (first.title, first.text.strip()) == (title, text.strip())


def now(name: str, summary: str, description: str = "", **labels: str) -> dict[str, Any]:
    """An alert that starts now: older ones do not wait for others of their group."""
    started = {"startsAt": datetime.now(UTC).isoformat()}
    return alert(name, summary, description, **labels) | started


async def test_the_text_of_several_alerts_of_a_model(tmp_path: Path) -> None:
    """The owner's chat tells causes and remedies beside the critical one, which comes first."""
    model = {"model": "tuner", "owner": "search"}
    posted = [
        now(name, f"{name}?", f"About {name}.", severity=alerts()[name].severity, **model)
        for name in (
            "LoraModelStopsOthers",
            "LoraSlotsAlmostExhausted",
            "LoraSlotsExhausted",
            "LoraSlotsOrphaned",
        )
    ]
    async with alertmanager(tmp_path, group_wait="1s", group_interval="300ms") as it:
        await it.post(*posted)

        async def came() -> bool:
            return bool(it.received.chat)

        await until(came)
        chat = it.received.chat[0]
        ended = {"endsAt": datetime.now(UTC).isoformat()}
        await it.post(*(one | ended for one in posted))

        async def resolved() -> bool:
            pages = [page["status"] for page in it.received.pages]
            return it.received.chat[-1].title.startswith("[RESOLVED]") and len(pages) == 2

        await until(resolved)
        last = it.received.chat[-1]
        pages = [page["status"] for page in it.received.pages]
    assert chat.to == "#search-models"
    assert chat.title == "[CRITICAL] tuner: 3 alerts"
    heads = [line.partition(",")[0] for line in chat.text.splitlines() if ", since " in line]
    assert heads == ["LoraSlotsExhausted", "LoraModelStopsOthers", "LoraSlotsOrphaned"]
    assert "\n\n\n" not in chat.text
    assert re.search(
        r"^Resolved: LoraSlotsExhausted of tuner, \w+ \d+ \w+ \d\d:\d\d to .* UTC$",
        last.text,
        re.MULTILINE,
    )
    assert pages == ["firing", "resolved"]


async def test_many_targets_make_one_text_that_can_be_read(tmp_path: Path) -> None:
    labels = {"severity": "warning", "cluster": "eu"}
    posted = [
        now(
            "LoraTargetDown", "A target cannot be read.", target=f"http://10.0.0.{n}:8000", **labels
        )
        for n in range(30)
    ]
    (message,) = await told(tmp_path, *posted, messages=1)
    assert message.title == "[WARNING] LoRA capacity (eu): A target cannot be read. (30 alerts)"
    assert message.text.count("LoraTargetDown, warning") == 20
    assert "30 alerts fire, too many to show: http://alertmanager.example.org\n" in message.text
