"""Settings from file, environment and flags, and what every mistake is told like."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exporter.documents import ConfigError
from exporter.loading import load
from exporter.quantities import parse_duration, show_duration, show_size

HERE = Path(__file__).parent
BAD = sorted((HERE / "bad").glob("*.yml"))


@pytest.fixture(autouse=True)
def _in_this_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def problems(file: Path | None, **more: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(file, **more)  # type: ignore[arg-type]  # passed through
    return str(caught.value).splitlines()


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_each_bad_file_is_told_exactly_what_is_wrong(file: Path) -> None:
    """Each `bad/NAME.yml` has the text of its problems in `bad/NAME.txt`."""
    expected = file.with_suffix(".txt").read_text().splitlines()
    assert problems(file.relative_to(HERE)) == expected


def test_there_are_bad_files() -> None:
    assert len(BAD) >= 12


def test_the_example_of_the_readme_loads() -> None:
    settings = load(HERE / "good.yml")
    assert [group.name for group in settings.targets] == ["serving", "training"]
    assert settings.targets[0].static == ("http://10.0.0.5:8000", "http://10.0.0.6:8000")
    assert (settings.poll.interval, settings.poll.timeout) == (15.0, 2.5)
    assert settings.poll.max_body == 8 * 2**20


def test_no_file_at_all() -> None:
    settings = load(targets=["http://10.0.0.5:8000/", "http://10.0.0.6:8000"])
    assert [group.name for group in settings.targets] == ["default"]
    assert settings.targets[0].static == ("http://10.0.0.5:8000", "http://10.0.0.6:8000")


def test_flags_win_over_the_environment_and_that_over_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LORA_EXPORTER_POLL__TIMEOUT", "3s")
    monkeypatch.setenv("LORA_EXPORTER_POLL__INTERVAL", "20s")
    settings = load(HERE / "good.yml", {"poll": {"interval": "30s"}})
    assert (settings.poll.interval, settings.poll.timeout) == (30.0, 3.0)
    assert settings.poll.max_body == 8 * 2**20


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORA_EXPORTER_POLL__INTERVAL", "often")
    monkeypatch.setenv("LORA_EXPORTER_POLL_TIMEOUT", "3s")
    for name in ("SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT", "PORT_10107_TCP_ADDR"):
        monkeypatch.setenv(f"LORA_EXPORTER_{name}", "set by Kubernetes")
    assert problems(HERE / "good.yml") == [
        "environment variable LORA_EXPORTER_POLL_TIMEOUT: found an unknown setting; wanted "
        "LORA_EXPORTER_SECTION__KEY, SECTION being one of CONFIG, WEB, POLL, PROBE, LOG, TARGETS, "
        "CLASSES, OWNERS, MODELS, PLANNING, MEASUREMENTS, INVENTORY",
        "environment variable LORA_EXPORTER_POLL__INTERVAL: poll.interval: found 'often'; wanted "
        "a duration with its unit, such as 10s, 1m30s or 500ms",
    ]


def test_a_variable_that_is_no_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORA_EXPORTER_PROBE__ALLOW", "10.0.0.0/8")
    assert problems(None) == [
        "environment variables LORA_EXPORTER_PROBE*: found no JSON; wanted JSON where a list or a "
        'mapping is set, such as ["10.0.0.0/8"]'
    ]


def test_a_contradiction_between_variables_is_placed_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LORA_EXPORTER_POLL__TIMEOUT", "30s")
    assert problems(None) == [
        "environment variables LORA_EXPORTER_POLL__*: poll: found timeout 30s, interval 10s; "
        "wanted timeout to be at most interval"
    ]


def test_paths_start_at_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "measured.yml").write_text("m: [{tokens_per_second: 1}]")
    file = tmp_path / "config.yml"
    file.write_text(
        "targets: [{name: g, auth: {bearer_token_file: token}}]\n"
        "measurements: {file: measured.yml}\n"
    )
    monkeypatch.chdir("/")
    settings = load(file)
    assert settings.targets[0].auth.bearer_token_file == tmp_path / "token"
    assert settings.measurements.file == tmp_path / "measured.yml"


def test_lists_of_targets_start_there_too_whether_or_not_they_exist(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_text('targets: [{name: g, file: {paths: ["lists/*.json", "/etc/t.yml"]}}]\n')
    (group,) = load(file).targets
    assert group.file is not None
    assert group.file.paths == (f"{tmp_path}/lists/*.json", "/etc/t.yml")


def test_a_bad_file_of_measurements_is_a_bad_configuration(tmp_path: Path) -> None:
    (tmp_path / "measured.yml").write_text("m: [{tokens_per_second: -1}]")
    file = tmp_path / "config.yml"
    file.write_text("measurements: {file: measured.yml}\n")
    assert problems(file) == [
        f"{tmp_path / 'measured.yml'}:1: m.0.tokens_per_second: found -1; wanted greater than 0"
    ]


def test_a_bad_flag_is_named() -> None:
    assert problems(None, flags={"web": {"listen_address": "10107"}}, targets=["ftp://x"]) == [
        "flag --web.listen-address: web.listen_address: found '10107'; wanted an address to "
        "listen on, such as :10107, 127.0.0.1:10107 or [::1]:10107",
        "flag --target: targets.0.static.0: found 'ftp://x'; wanted an address such as "
        "http://10.0.0.5:8000, without credentials, query or fragment",
    ]


def test_a_target_of_the_file_given_again_as_a_flag() -> None:
    assert problems(HERE / "good.yml", targets=["http://10.0.0.6:8000"]) == [
        "flag --target: targets.2.static.0: found 'http://10.0.0.6:8000', which is already in "
        "group 'serving'; wanted each target once"
    ]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "none.yml"
    assert problems(missing) == [
        f"{missing}: found No such file or directory; wanted a file that can be read"
    ]
    assert problems(tmp_path) == [
        f"{tmp_path}: found Is a directory; wanted a file that can be read"
    ]
    binary = tmp_path / "binary.yml"
    binary.write_bytes(b"\xff\xfe\x00\xd8")
    assert len(problems(binary)) == 1


@pytest.mark.parametrize(
    "text",
    ["x: !!bool y1", 'x: !!int ""', "x: !!timestamp foo", "__pydantic_self__: 1", "_env_file: /x"],
)
def test_no_file_escapes_as_a_traceback(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yml"
    file.write_text(text + "\n")
    assert len(problems(file)) == 1


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = tmp_path / "pipe"
    assert problems(pipe) == [f"{pipe}: found no regular file; wanted a file that can be read"]


@pytest.mark.parametrize(
    "group",
    [
        "static: ['admin:hunter2@10.0.0.5:8000']",
        "static: ['http://u:hun/ter2hunter2@h']",
        "static: ['http://h/?token=hunter2']",
        "auth: hunter2token",
        "auth: {bearer_token_file: hunter2token}",
        "auth: {basic: 'admin:hunter2'}",
        "engine: twinkle, state: {url: 'redis://:hun@hunter2@h/0'}",
    ],
)
def test_secrets_in_the_wrong_place_are_not_repeated(tmp_path: Path, group: str) -> None:
    file = tmp_path / "config.yml"
    file.write_text(f"targets: [{{name: g, {group}}}]\n")
    assert not [line for line in problems(file) if "hunter2" in line]


def test_aliases_that_grow_without_end_do_not_hang(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    bomb = tmp_path / "bomb.yml"
    bomb.write_text("\n".join(lines))
    assert len(problems(bomb)) == 30


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10.0), ("1m30s", 90.0), ("500ms", 0.5), ("1.5h", 5400.0), ("2d", 172800.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert parse_duration(show_duration(seconds)) == seconds


@pytest.mark.parametrize("value", ["", "10", "s", "-1s", "1 s", "1s2", "1w", 10, None, "9" * 50])
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="a duration with its unit"):
        parse_duration(value)


def test_how_people_are_shown_durations_and_sizes() -> None:
    assert [show_duration(s) for s in (0, 0.0001, 90, 3600, 0.25)] == [
        "0s",
        "0s",
        "1m30s",
        "1h",
        "250ms",
    ]
    assert [show_size(n) for n in (0, 1000, 1024, 16 * 2**20)] == ["0B", "1000B", "1KiB", "16MiB"]
