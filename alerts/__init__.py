"""Prometheus rules on LoRA capacity, their tests and runbooks."""
