"""Renders the rules from `alerts/inputs.yml`: `python -m alerts.generator [--check]`."""
