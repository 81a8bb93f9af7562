"""The HTTP server: metrics, probe, page, health."""
