"""A dashboard around its panels: variables, links, annotations, places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.models.dashboard import (
    AnnotationContainer,
    AnnotationQuery,
    Dashboard,
    DashboardCursorSync,
    DashboardDashboardTemplating,
    DashboardDashboardTime,
    DashboardLink,
    DashboardLinkType,
    GridPos,
    Panel,
    RowPanel,
    VariableHide,
    VariableModel,
    VariableOption,
    VariableRefresh,
    VariableSort,
    VariableType,
)
from grafana_foundation_sdk.models.prometheus import Dataquery

from dashboards.generator.panels import DATASOURCE, KEEP
from dashboards.generator.promql import REPLICA

TAG = "lora-capacity"
MODEL_URL = f"/d/lora-model?var-model=${{__data.fields.Model:percentencode}}&{KEEP}"
REPLICA_URL = (
    "/d/lora-replicas?var-model=${__data.fields.Model:percentencode}"
    f"&var-replica=${{__data.fields.Replica:percentencode}}&{KEEP}"
)
# Models of a /probe have no info. A query_result, as label_values takes one selector only.
_MODELS = (
    'query_result(group by (model) (lora_model_info{owner=~"$owner"}) '
    "or group by (model) (lora_replica_info unless on (model) lora_model_info))"
)


@dataclass(frozen=True, slots=True)
class Line:
    """Panels beside each other: each with its width of 24."""

    height: int
    panels: tuple[tuple[int, Panel], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A row with lines below it. `repeat`: once for each value of this variable."""

    title: str
    lines: tuple[Line, ...]
    collapsed: bool = False
    repeat: str | None = None


def dashboard(
    uid: str,
    title: str,
    description: str,
    sections: Sequence[Line | Section],
    *,
    replicas: bool = False,
) -> Dashboard:
    """A dashboard. `replicas`: whether it has a variable for them."""
    variables = [_datasource(), _owner(), _model(), *([_replica()] if replicas else [])]
    return Dashboard(
        uid=uid,
        title=title,
        description=description,
        tags=[TAG],
        timezone="browser",
        editable=False,
        graph_tooltip=DashboardCursorSync.CROSSHAIR,
        time=DashboardDashboardTime(from_val="now-1h", to="now"),
        refresh="30s",
        panels=_placed(sections),
        templating=DashboardDashboardTemplating(list_val=variables),
        annotations=AnnotationContainer(list_val=_annotations()),
        links=[_others()],
    )


def _placed(sections: Sequence[Line | Section]) -> list[Panel | RowPanel]:
    """Gives each panel its place and its number."""
    placed: list[Panel | RowPanel] = []
    number, y = 0, 0
    for section in sections:
        lines = section.lines if isinstance(section, Section) else (section,)
        inside: list[Panel] = []
        if isinstance(section, Section):
            number += 1
            placed.append(_row(section, number, y, inside))
            y += 1
        folded = isinstance(section, Section) and section.collapsed
        for line in lines:
            x = 0
            for width, panel in line.panels:
                number += 1
                panel.id_val = number
                panel.grid_pos = GridPos(h=line.height, w=width, x=x, y=y)
                x += width
                if folded:
                    inside.append(panel)
                else:
                    placed.append(panel)
            y += line.height
    return placed


def _row(section: Section, number: int, y: int, inside: list[Panel]) -> RowPanel:
    return RowPanel(
        collapsed=section.collapsed,
        title=section.title,
        grid_pos=GridPos(h=1, w=24, x=0, y=y),
        id_val=number,
        panels=inside,
        repeat=section.repeat,
    )


def _datasource() -> VariableModel:
    return VariableModel(
        type_val=VariableType.DATASOURCE,
        name="datasource",
        label="Data source",
        query="prometheus",
        current=VariableOption(selected=False, text="", value=""),
        refresh=VariableRefresh.ON_DASHBOARD_LOAD,
        options=[],
        regex="",
        hide=VariableHide.DONT_HIDE,
    )


def _query(
    name: str, label: str, query: str, text: str, *, regex: str = "", all_value: str | None = None
) -> VariableModel:
    return VariableModel(
        type_val=VariableType.QUERY,
        name=name,
        label=label,
        description=text,
        datasource=DATASOURCE,
        query={"query": query, "refId": f"variable-{name}"},
        definition=query,
        regex=regex,
        multi=True,
        include_all=True,
        all_value=all_value,
        current=VariableOption(selected=True, text=["All"], value=["$__all"]),
        options=[],
        refresh=VariableRefresh.ON_TIME_RANGE_CHANGED,
        sort=VariableSort.NATURAL_ASC,
        hide=VariableHide.DONT_HIDE,
    )


def _owner() -> VariableModel:
    # models without a card have an empty owner, which only a value for All meets
    query = "label_values(lora_model_info, owner)"
    return _query("owner", "Owner", query, "Owners from the models' cards.", all_value=".*")


def _model() -> VariableModel:
    # no value of its own for All, so that an owner narrows it
    return _query("model", "Model", _MODELS, "Models of the owners.", regex='/model="([^"]+)"/')


def _replica() -> VariableModel:
    query = 'label_values(lora_replica_info{model=~"$model"}, replica_id)'
    return _query("replica", "Replica", query, "Replicas of the models.", all_value=".*")


def _annotations() -> list[AnnotationQuery]:
    firing = 'ALERTS{alertname=~"Lora.*",alertstate="firing",severity!="info",model=~"$model|"}'
    restarts = (
        "max by (model, replica_id) "
        f"(resets(lora_replica_generation_tokens_total{{{REPLICA}}}[$__rate_interval])) > 0"
    ).replace(',replica_id=~"$replica"', "")
    return [
        _annotation("Alerts", "red", firing, "{{alertname}}", "{{model}} {{replica_id}}"),
        _annotation("Replica restarts", "blue", restarts, "Restart", "{{model}} {{replica_id}}"),
    ]


def _annotation(name: str, color: str, expr: str, title: str, text: str) -> AnnotationQuery:
    return AnnotationQuery(
        name=name,
        datasource=DATASOURCE,
        enable=True,
        icon_color=color,
        expr=expr,
        target=Dataquery(datasource=DATASOURCE, expr=expr, ref_id="Anno", range_val=True),
        title_format=title,
        text_format=text,
        step="60s",
    )


def _others() -> DashboardLink:
    return DashboardLink(
        title="LoRA capacity",
        type_val=DashboardLinkType.DASHBOARDS,
        icon="external link",
        tooltip="The other dashboards on LoRA capacity",
        tags=[TAG],
        as_dropdown=False,
        target_blank=False,
        include_vars=True,
        keep_time=True,
    )
