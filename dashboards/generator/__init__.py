"""Writes the dashboards, one module for each, with Grafana's own types."""
