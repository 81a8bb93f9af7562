"""Grafana dashboards, and the generator that writes them."""
