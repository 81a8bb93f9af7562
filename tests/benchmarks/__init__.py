"""Measurements, side by side with a peer in the same run. `make bench` runs them."""
