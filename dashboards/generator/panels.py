"""Panels in few words: what they ask, how it is shown, and the columns of tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grafana_foundation_sdk.models import (
    bargauge,
    common,
    statetimeline,
    timeseries,
)
from grafana_foundation_sdk.models import (
    stat as stat_model,
)
from grafana_foundation_sdk.models import (
    table as table_model,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardFieldConfigSourceOverrides as Override,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardLink,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColor,
    FieldColorModeId,
    FieldConfig,
    FieldConfigSource,
    MatcherConfig,
    Panel,
    ThresholdsConfig,
    ValueMapping,
)
from grafana_foundation_sdk.models.prometheus import Dataquery, PromQueryFormat

from dashboards.generator.words import NEUTRAL, NOTHING_KNOWN, absent

DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
KEEP = "${datasource:queryparam}&${__url_time_range}"
"""What every link hands on."""
_SERIES = re.compile(r"\b(?:lora|scrape|process)_[a-z_]+|\bALERTS(?:_FOR_STATE)?\b|\bup(?={)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the field, its name for people, and how it is shown."""

    name: str
    title: str
    unit: str = "short"
    width: int | None = None
    mappings: Sequence[ValueMapping] = ()
    thresholds: ThresholdsConfig | None = None
    cell: common.TableCellOptions | None = None
    link: tuple[str, str] | None = None
    """Title and address."""
    nothing: str = "?"
    """What stands for a number that is not known."""
    most: float | None = None
    """End of a bar."""
    decimals: int | None = None
    left: bool = False
    """Numbers that are shown as words stand left."""


NOTE = "note"
"""The label of a row that says in words that there is nothing; see promql.otherwise."""
BAR = common.TableBarGaugeCellOptions(
    mode=common.BarGaugeDisplayMode.BASIC, value_display_mode=common.BarGaugeValueMode.TEXT
)
COLOURED = common.TableColoredBackgroundCellOptions(
    mode=common.TableCellBackgroundDisplayMode.BASIC
)
TEXT = common.TableColorTextCellOptions()


@dataclass(frozen=True, slots=True)
class Query:
    """An expression; instant ones feed stats and tables."""

    expr: str
    legend: str = ""


@dataclass(slots=True)
class Look:
    """How a panel shows its values, beyond its kind."""

    unit: str = "short"
    thresholds: ThresholdsConfig = field(default_factory=lambda: NEUTRAL)
    mappings: Sequence[ValueMapping] = ()
    nothing: str = NOTHING_KNOWN
    decimals: float | None = None
    least: float | None = None
    most: float | None = None
    overrides: list[Override] = field(default_factory=list)


def names(queries: Sequence[Query]) -> list[str]:
    """The series that the queries read, in order."""
    return list(dict.fromkeys(n for query in queries for n in _SERIES.findall(query.expr)))


def link(title: str, url: str) -> DashboardLink:
    """A link of a field."""
    return DashboardLink(title=title, url=url)


def colour(series: str, color: str, *, dashed: bool = False, bare: bool = False) -> Override:
    """A fixed colour for series whose name matches; `bare`: without an area below."""
    dashes: dict[str, object] = (
        {"custom.lineStyle": {"fill": "dash", "dash": [8, 6]}} if dashed else {}
    )
    area: dict[str, object] = {"custom.fillOpacity": 0} if bare or dashed else {}
    return _coloured(series, color, dashes | area)


def unstacked(series: str, color: str) -> Override:
    """A line over stacked areas."""
    line = {"custom.stacking": {"mode": "none"}, "custom.lineWidth": 2, "custom.fillOpacity": 0}
    return _coloured(series, color, line)


def _coloured(series: str, color: str, more: Mapping[str, object]) -> Override:
    properties = {"color": {"mode": "fixed", "fixedColor": color}, **more}
    return Override(
        matcher=MatcherConfig("byRegexp", f"/{series}/"),
        properties=[DynamicConfigValue(name, value) for name, value in properties.items()],
    )


def stat(
    title: str,
    text: str,
    queries: Sequence[Query],
    look: Look,
    *,
    background: bool = False,
    named: bool = False,
    spark: bool = False,
    rows: bool = False,
    links: Sequence[DashboardLink] = (),
) -> Panel:
    """Numbers to read from afar: `rows` one below another, `spark` over their course."""
    options = stat_model.Options(
        graph_mode=common.BigValueGraphMode.AREA if spark else common.BigValueGraphMode.NONE,
        color_mode=common.BigValueColorMode.BACKGROUND_SOLID
        if background
        else common.BigValueColorMode.VALUE,
        justify_mode=common.BigValueJustifyMode.AUTO,
        text_mode=common.BigValueTextMode.VALUE_AND_NAME if named else common.BigValueTextMode.AUTO,
        reduce_options=common.ReduceDataOptions(calcs=["lastNotNull"], values=False, fields=""),
        orientation=common.VizOrientation.HORIZONTAL if rows else common.VizOrientation.AUTO,
    )
    targets = [_target(n, query, instant=not spark) for n, query in enumerate(queries)]
    return _panel("stat", title, text, queries, targets, look, options, None, links=links)


def bars(title: str, text: str, queries: Sequence[Query], look: Look) -> Panel:
    """One bar for each value, sorted as they come."""
    options = bargauge.Options(
        display_mode=common.BarGaugeDisplayMode.BASIC,
        value_mode=common.BarGaugeValueMode.TEXT,
        name_placement=common.BarGaugeNamePlacement.LEFT,
        sizing=common.BarGaugeSizing.AUTO,
        reduce_options=common.ReduceDataOptions(calcs=["lastNotNull"], values=False, fields=""),
        orientation=common.VizOrientation.HORIZONTAL,
    )
    targets = [_target(n, query, instant=True) for n, query in enumerate(queries)]
    return _panel("bargauge", title, text, queries, targets, look, options, None)


def graph(
    title: str,
    text: str,
    queries: Sequence[Query],
    look: Look,
    *,
    stacked: bool = False,
    fill: int = 10,
    stepped: bool = True,
    limit: bool = False,
    table: bool = True,
) -> Panel:
    """A course over time. Counts of slots and replicas are stepped: there is no half of one."""
    custom = common.GraphFieldConfig(
        draw_style=common.GraphDrawStyle.LINE,
        line_interpolation=common.LineInterpolation.STEP_AFTER
        if stepped
        else common.LineInterpolation.LINEAR,
        # the line of a part of nothing would hide the one below
        line_width=0 if stacked else 2,
        fill_opacity=fill,
        show_points=common.VisibilityMode.NEVER,
        span_nulls=False,
        axis_soft_min=0,
        # a course of nothing but 0 needs a scale too
        axis_soft_max=1,
        stacking=common.StackingConfig(
            mode=common.StackingMode.NORMAL if stacked else common.StackingMode.NONE
        ),
        thresholds_style=common.GraphThresholdsStyleConfig(
            mode=common.GraphThresholdsStyleMode.AREA
            if limit
            else common.GraphThresholdsStyleMode.OFF
        ),
    )
    options = timeseries.Options(
        legend=common.VizLegendOptions(
            display_mode=common.LegendDisplayMode.TABLE if table else common.LegendDisplayMode.LIST,
            placement=common.LegendPlacement.RIGHT if table else common.LegendPlacement.BOTTOM,
            show_legend=True,
            calcs=["lastNotNull", "max"] if table else [],
            sort_by="Max" if table else None,
            sort_desc=True if table else None,
        ),
        tooltip=common.VizTooltipOptions(
            mode=common.TooltipDisplayMode.MULTI, sort=common.SortOrder.DESCENDING
        ),
    )
    targets = [_target(n, query) for n, query in enumerate(queries)]
    mode = FieldColorModeId.PALETTE_CLASSIC_BY_NAME
    return _panel("timeseries", title, text, queries, targets, look, options, custom, mode)


def strip(
    title: str, text: str, queries: Sequence[Query], look: Look, *, legend: bool = False
) -> Panel:
    """States, or values by their threshold, as coloured strips over time."""
    options = statetimeline.Options(
        show_value=common.VisibilityMode.AUTO,
        row_height=0.85,
        merge_values=True,
        align_value=common.TimelineValueAlignment.LEFT,
        legend=common.VizLegendOptions(
            display_mode=common.LegendDisplayMode.LIST,
            placement=common.LegendPlacement.BOTTOM,
            show_legend=legend,
        ),
        tooltip=common.VizTooltipOptions(mode=common.TooltipDisplayMode.SINGLE),
        per_page=20,
    )
    custom = statetimeline.FieldConfig(fill_opacity=80, line_width=0, span_nulls=False)
    targets = [_target(n, query) for n, query in enumerate(queries)]
    panel = _panel("state-timeline", title, text, queries, targets, look, options, custom)
    panel.max_data_points = 240
    return panel


def table(
    title: str,
    text: str,
    queries: Sequence[Query],
    columns: Sequence[Column],
    *,
    sort: Sequence[tuple[str, bool]] = (),
    nothing: str = NOTHING_KNOWN,
    points: int | None = None,
    links: Sequence[DashboardLink] = (),
) -> Panel:
    """Rows joined on the labels that the queries share. `sort`: titles, and whether downwards."""
    options = table_model.Options(
        show_header=True,
        cell_height=common.TableCellHeight.SM,
        sort_by=[common.TableSortByFieldState(display_name=by, desc=down) for by, down in sort],
    )
    custom = table_model.FieldConfig(
        align=common.FieldTextAlignment.AUTO, cell_options=common.TableAutoCellOptions()
    )
    targets = [_target(n, query, instant=True, rows=True) for n, query in enumerate(queries)]
    values = [_ref(n) for n in range(len(queries))]
    columns = [Column(NOTE, " ", nothing=""), *columns]
    shown = [_field(column.name, len(queries)) for column in columns]
    hidden = {_field(name, len(queries)): True for name in ("Time", *values)}
    organize = {
        "indexByName": {name: index for index, name in enumerate(shown)},
        "renameByName": {name: column.title for name, column in zip(shown, columns, strict=True)},
        "excludeByName": {name: True for name in hidden if name not in shown},
        "includeByName": {},
    }
    look = Look(nothing=nothing, overrides=[_override(column) for column in columns])
    panel = _panel(
        "table", title, text, queries, targets, look, options, custom, FieldColorModeId.THRESHOLDS
    )
    panel.links = list(links) or None
    panel.max_data_points = points
    panel.transformations = [
        DataTransformerConfig("merge", options={}),
        DataTransformerConfig("filterFieldsByName", options={"include": {"names": shown}}),
        DataTransformerConfig("organize", options=organize),
    ]
    return panel


def _field(name: str, queries: int) -> str:
    """The field that holds a query's values: a lone query's is named without its letter."""
    if len(name) == 1:
        return "Value" if queries == 1 else f"Value #{name}"
    return name


def _override(column: Column) -> Override:
    def config(name: str, value: object) -> DynamicConfigValue:
        return DynamicConfigValue(name, value)

    mappings = [*column.mappings, absent(column.nothing)]
    properties = [
        config("unit", column.unit),
        config("mappings", mappings),
        # for text, which is empty and not null
        config("noValue", column.nothing),
    ]
    if column.width is not None:
        properties.append(config("custom.width", column.width))
    if column.thresholds is not None:
        properties.append(config("thresholds", column.thresholds))
    if column.cell is not None:
        properties.append(config("custom.cellOptions", column.cell))
    if column.link is not None:
        properties.append(config("links", [link(*column.link)]))
    if column.most is not None:
        properties += [config("min", 0), config("max", column.most)]
    if column.left:
        properties.append(config("custom.align", "left"))
    if column.decimals is not None:
        properties.append(config("decimals", column.decimals))
    return Override(matcher=MatcherConfig("byName", column.title), properties=properties)


def _ref(number: int) -> str:
    return chr(ord("A") + number)


def _target(number: int, query: Query, *, instant: bool = False, rows: bool = False) -> Dataquery:
    return Dataquery(
        datasource=DATASOURCE,
        expr=query.expr,
        legend_format=query.legend or "__auto",
        ref_id=_ref(number),
        instant=instant,
        range_val=not instant,
        format_val=PromQueryFormat.TABLE if rows else PromQueryFormat.TIME_SERIES,
    )


def _panel(
    kind: str,
    title: str,
    text: str,
    queries: Sequence[Query],
    targets: Sequence[Dataquery],
    look: Look,
    options: object,
    custom: object,
    mode: FieldColorModeId = FieldColorModeId.THRESHOLDS,
    links: Sequence[DashboardLink] = (),
) -> Panel:
    defaults = FieldConfig(
        unit=look.unit,
        decimals=look.decimals,
        min_val=look.least,
        max_val=look.most,
        thresholds=look.thresholds,
        mappings=[*look.mappings, absent(look.nothing)] if kind != "table" else [],
        color=FieldColor(mode=mode),
        no_value=look.nothing,
        custom=custom,
        links=list(links) or None,
    )
    return Panel(
        type_val=kind,
        title=title,
        description=f"{text}\n\n{', '.join(names(queries))}",
        datasource=DATASOURCE,
        targets=list(targets),
        options=options,
        field_config=FieldConfigSource(defaults=defaults, overrides=look.overrides),
    )
