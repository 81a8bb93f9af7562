"""Names, selectors, taints and tolerations, in the shape that Kubernetes gives them."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from exporter.cluster import Taint, Toleration
from exporter.settings.parts import ContradictionError, Section

_VALUE = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_DNS_NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_KEY = rf"({_DNS_NAME}/)?{_VALUE}"
_SET = rf"\(\s*({_VALUE})?(\s*,\s*({_VALUE})?)*\s*\)"
_TERM = rf"(!?\s*{_KEY}|{_KEY}\s*(==?|!=)\s*({_VALUE})?|{_KEY}\s+(in|notin)\s*{_SET})"
_SELECTOR = re.compile(rf"\s*{_TERM}(\s*,\s*{_TERM})*\s*")


def _label_name(value: str) -> str:
    if re.fullmatch(_KEY, value) is None:
        raise ValueError("the name of a label, such as app or example.com/model")
    return value


def _label_value(value: str) -> str:
    if value and re.fullmatch(_VALUE, value) is None:
        raise ValueError("a label's value: at most 63 letters, digits, and -_. between them")
    return value


def _label_selector(value: str) -> str:
    if len(value) > 4096 or _SELECTOR.fullmatch(value) is None:
        raise ValueError("a label selector, such as app=vllm or app in (vllm,sglang)")
    return value


def _namespace(value: str) -> str:
    if re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", value) is None:
        raise ValueError("the name of a namespace")
    return value


def _resource_name(value: str) -> str:
    if re.fullmatch(rf"{_DNS_NAME}/{_VALUE}", value) is None:
        raise ValueError("the name of a resource, such as nvidia.com/gpu")
    return value


def _class_name(value: str) -> str:
    if re.fullmatch(_DNS_NAME, value) is None:
        raise ValueError("the name of a PriorityClass")
    return value


LabelName = Annotated[str, AfterValidator(_label_name)]
LabelValue = Annotated[str, AfterValidator(_label_value)]
LabelSelector = Annotated[str, AfterValidator(_label_selector)]
Namespace = Annotated[str, AfterValidator(_namespace)]
ResourceName = Annotated[str, AfterValidator(_resource_name)]
PriorityClassName = Annotated[str, AfterValidator(_class_name)]


class TaintSettings(Section):
    """A taint of a node."""

    key: LabelName
    """Key."""
    value: LabelValue = ""
    """Value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """Effect; `PreferNoSchedule` keeps nobody away."""

    @property
    def taint(self) -> Taint:
        """The taint for planning."""
        return Taint(self.key, self.value, self.effect)


class TolerationSettings(Section):
    """Taints that do not keep a model's replicas away, as a pod has them."""

    key: LabelName | None = None
    """Key of the taints; none, with `Exists`, stands for all."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Whether the value must be equal, or any will do."""
    value: LabelValue = ""
    """Value of the taints."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taints; by default any."""
    seconds: int | None = Field(default=None, alias="tolerationSeconds")
    """Taken, and of no effect: how long a pod stays after a taint came."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise ContradictionError("operator: Exists and value", "no value, as any will do")
        if self.key is None and self.operator == "Equal":
            raise ContradictionError("no key and operator: Equal", "key, or operator: Exists")
        return self

    @property
    def toleration(self) -> Toleration:
        """The toleration for planning."""
        any_value = self.operator == "Exists"
        return Toleration(self.key, None if any_value else self.value, self.effect)
