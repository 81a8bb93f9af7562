"""Reads the adapter table of every LoRA replica in a fleet and tells how many slots are left."""

__version__ = "0.1.0"
