"""What commands print of foreign text: as it is, and nothing of it drives the terminal."""

from __future__ import annotations

import json

import pytest
import yaml

from airflow_provider_sinks.cli.frame import show, show_one, show_text, tell
from airflow_provider_sinks.core.dead_letters.mask import Mask, shown

TEXTS = ("table", "plain")
HOSTILE = "[/x] [red]no[/red] :warning: [link=http://evil]here"
CONTROL = "\x1b[2Jgone\r\u202eback\x07"
FORGED = "no\n0:9 | forged"


@pytest.mark.parametrize("output", TEXTS)
def test_markup_of_a_console_is_shown_as_it_is(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    show([{"place": "0:1", "error": HOSTILE}], output)

    assert HOSTILE in capsys.readouterr().out


@pytest.mark.parametrize("output", TEXTS)
def test_masked_json_is_shown_whole(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = shown(b'{"[/b]": [true, 5], "c": [null]}', Mask.VALUES)

    show_one({"value": value}, output, in_lines=False)

    assert '{"[/b]": ["<boolean>", "<number>"], "c": [null]}' in capsys.readouterr().out


@pytest.mark.parametrize("output", TEXTS)
def test_characters_that_drive_a_terminal_are_written_out(
    output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show([{"error": CONTROL}], output)
    show_one({"headers": {f"name{CONTROL}": CONTROL}}, output)
    show_text(CONTROL)
    tell(CONTROL)

    said = capsys.readouterr()
    assert (said.out + said.err).count(r"\x1b[2Jgone\r\u202eback\x07") == 5
    assert all(line.isprintable() for line in (said.out + said.err).split("\n"))


@pytest.mark.parametrize("output", TEXTS)
def test_a_row_is_a_line_and_a_query_keeps_its_lines(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    show([{"error": FORGED}], output)
    show_one({"error": FORGED}, output, in_lines=False)
    letters = capsys.readouterr().out
    show_one({"query": "SELECT *\nFROM source"}, output)

    assert letters.count(r"no\n0:9 | forged") == 2
    assert r"\n" not in capsys.readouterr().out


@pytest.mark.parametrize("mask", Mask)
@pytest.mark.parametrize(
    "content",
    [
        rb'{"\ud800": 1, "\u001b[2J": "\udc00"}',
        b'{"a": "\\u0000", "b":' + b"[" * 700 + b"]" * 700 + b"}",
        b"[" * 100_000,
        b"[" + b"9" * 5_000 + b"]",
        b"\x1b[2J",
        b"\xff\xfe",
    ],
)
def test_any_content_of_a_letter_can_be_printed(
    content: bytes, mask: Mask, capsys: pytest.CaptureFixture[str]
) -> None:
    for output in TEXTS:
        show_one({"value": shown(content, mask)}, output, in_lines=False)
        assert "value" in capsys.readouterr().out.encode().decode()
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        show_one({"value": shown(content, mask)}, output, in_lines=False)
        assert read(capsys.readouterr().out) == {"value": shown(content, mask)}
