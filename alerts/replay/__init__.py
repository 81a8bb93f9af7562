"""Replays weeks of made-up fleets through the real rules, and measures how the alerts did."""
