"""Every series, declared once: name, type, labels, help, stability."""

from __future__ import annotations

from collections.abc import Mapping

from exporter.catalogue.family import Family
from exporter.catalogue.fleet import FLEET_FAMILIES
from exporter.catalogue.own import EXPORTER_FAMILIES
from exporter.catalogue.plans import PLAN_FAMILIES

FAMILIES: Mapping[str, Family] = {
    family.name: family for family in (*FLEET_FAMILIES, *PLAN_FAMILIES, *EXPORTER_FAMILIES)
}
"""All series by name."""
