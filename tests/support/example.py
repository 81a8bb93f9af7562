"""The worked example of the design as a configuration."""

from __future__ import annotations

from pathlib import Path

EXAMPLE = """
classes: {gold: 100, standard: 50, batch: 0}
models:
  chat: {class: gold, gpus: 1, target_tokens_per_second: 9000}
  embed: {class: standard, gpus: 1}
  batch-llm: {class: batch, gpus: 1, min_replicas: 3}
  big: {class: gold, gpus: 2}
measurements: {file: FILE}
inventory:
  nodes:
    a: {gpus: 4, replicas: {batch-llm: 2, chat: 1}}
    b: {gpus: 2, replicas: {embed: 1, batch-llm: 1}}
    c: {gpus: 1}
"""
MEASURED = "chat: [{tokens_per_second: 2400, profile: h100-chat}]\n"


def write_example(folder: Path, model: str = "chat", more: str = "") -> Path:
    """Writes it, with its file of measurements beside it, and gives its path.

    `model` is another name for chat, `more` further settings.
    """
    measurements = folder / "measurements.yml"
    measurements.write_text(MEASURED.replace("chat:", f"{model}:"))
    file = folder / "config.yml"
    file.write_text(EXAMPLE.replace("FILE", str(measurements)).replace("chat", model) + more)
    return file
