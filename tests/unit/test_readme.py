"""What the README and the docs show is what the code does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from airflow_provider_sinks.core.decision.classify import ProgressState, ResourceState, WitnessState
from airflow_provider_sinks.core.decision.reasons.output import OutputReason
from airflow_provider_sinks.core.decision.reasons.progress import ProgressReason
from airflow_provider_sinks.core.decision.reasons.reason import Reason
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.table import DECISIONS
from airflow_provider_sinks.core.decision.way_on import WayOn
from airflow_provider_sinks.core.lifecycle.dag_gone import GONE_FOR_SECONDS
from airflow_provider_sinks.core.spec.sink_file import load_yaml
from tests.facts import every_reason

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

ANYTHING = tuple(WitnessState)
RECORDS = {
    "not readable": ProgressState.UNKNOWN,
    "none": ProgressState.NONE,
    "deleted": ProgressState.EMPTIED,
    "deleted in part": ProgressState.IN_PART,
    "nothing written": ProgressState.UNWRITTEN,
    "rows written": ProgressState.WRITTEN,
}
DATA = {
    "any": tuple(ResourceState),
    "there": (ResourceState.PRESENT, ResourceState.GREW, ResourceState.REPLACED),
    "missing": (ResourceState.MISSING,),
    "not visible": (ResourceState.UNKNOWN,),
    "the recorded one": (ResourceState.PRESENT,),
    "grown": (ResourceState.GREW,),
    "replaced": (ResourceState.REPLACED,),
}
REMEMBERED = {
    "anything": ANYTHING,
    "no rows": (WitnessState.SILENT,),
    "no more": (WitnessState.SILENT, WitnessState.TARGET),
    "rows": (WitnessState.AHEAD,),
    "no rows, but the broker commits": (WitnessState.TARGET,),
    "more": (WitnessState.AHEAD,),
}
REFUSALS = {
    "progress is lost": ProgressReason.PROGRESS_LOST,
    "progress was emptied": ProgressReason.PROGRESS_EMPTIED,
    "progress was emptied in part": ProgressReason.PROGRESS_EMPTIED_IN_PART,
    "progress was rolled back": ProgressReason.PROGRESS_ROLLED_BACK,
    "output is lost": OutputReason.OUTPUT_LOST,
    "output was replaced": OutputReason.OUTPUT_REPLACED,
}
WITHOUT_RECORD = (ProgressState.NONE, ProgressState.EMPTIED)


SECRET_IN_CLEAR = re.compile(
    r"--conn-password|password\W+:|\.pem\W+:|[:/]/[^/@\s]*:[^/@\s]+@|variables set \S*secret", re.IGNORECASE
)


def rows(text: str, columns: int) -> Iterator[list[str]]:
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == columns:
            yield cells


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def verdict_of(records: ProgressState, cell: Ruling | Reason) -> str:
    if isinstance(cell, Reason):
        return "refuse"
    if cell is Ruling.WAIT:
        return "wait"
    return "start" if records in WITHOUT_RECORD else "resume"


def test_the_readme_has_every_cell_of_the_decision_table_once() -> None:
    seen: dict[tuple[ProgressState, ResourceState, WitnessState], str] = {}
    for records, data, remembered, verdict in rows(README, 4):
        if records not in RECORDS:
            continue
        for key in product((RECORDS[records],), DATA[data], REMEMBERED[remembered]):
            assert key not in seen
            seen[key] = verdict

    assert seen.keys() == DECISIONS.keys()
    for key, verdict in seen.items():
        assert verdict.startswith(f"**{verdict_of(key[0], DECISIONS[key])}**")
        if isinstance(DECISIONS[key], Reason):
            assert REFUSALS[verdict.removeprefix("**refuse**: ")] is DECISIONS[key]


def test_the_dag_in_the_readme_is_the_one_that_the_demo_runs() -> None:
    file = (ROOT / "dags" / "pageviews_enriched.py").read_text()
    quoted = re.search(r"^# \[START factory\]\n(.*)^# \[END factory\]\n", file, re.MULTILINE | re.DOTALL)

    assert quoted is not None
    assert blocks(README, "python")[0] == quoted[1]


QUOTES = re.compile(r"^<!-- (dags/\S+) (\w+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DAG_PAGE = "".join(
    (ROOT / "docs" / page).read_text() for page in ("dags.md", "dead-letters.md", "sinks-commands.md")
)


@pytest.mark.parametrize(("file", "name", "shown"), QUOTES.findall(DAG_PAGE), ids=lambda text: text[:30])
def test_the_docs_quote_the_example_dags_as_they_are(file: str, name: str, shown: str) -> None:
    marked = rf"^# \[START {name}\]\n(.*)^# \[END {name}\]\n"
    found = re.search(marked, (ROOT / file).read_text(), re.MULTILINE | re.DOTALL)

    assert found is not None
    assert shown == found[1]


def test_every_example_dag_is_quoted() -> None:
    files = {f"dags/{file.name}" for file in (ROOT / "dags").iterdir() if file.is_file()}

    assert {file for file, _, _ in QUOTES.findall(DAG_PAGE)} == files


def test_every_reason_is_documented_with_its_ways_on() -> None:
    table = (ROOT / "docs" / "decision-table.md").read_text().partition("| refused because |")[2]
    briefs = {reason.brief(): reason.entry.ways for reason in every_reason()}
    shown = {cells[0]: tuple(re.findall(r"`(\w+)`", cells[1])) for cells in rows(table, 3)}

    assert shown == briefs


def test_every_way_on_is_documented() -> None:
    text = (ROOT / "docs" / "decision-table.md").read_text()

    assert [cells[0] for cells in rows(text, 2) if cells[0].strip("`") in set(WayOn)] == [
        f"`{way}`" for way in WayOn
    ]


def test_the_yaml_in_the_docs_is_a_sink() -> None:
    _connections, shown = blocks((ROOT / "docs" / "getting-started.md").read_text(), "yaml")

    assert load_yaml(shown) == load_yaml((ROOT / "dags" / "sinks.yaml").read_text())


def messages() -> Iterator[str]:
    for message, _ in rows((ROOT / "docs" / "errors.md").read_text(), 2):
        yield from re.findall(r"`([^`]*)`", message)


@pytest.mark.parametrize("message", sorted(set(messages())))
def test_the_errors_in_the_docs_are_in_the_code(message: str) -> None:
    folders = ROOT / "airflow_provider_sinks"
    code = "\n".join(file.read_text() for file in folders.rglob("*.py"))

    assert all(part.strip() in code for part in message.split("…"))


_OF_THE_PROTOCOL = ("RefusedError", "FencedError", "InDoubtError")
_REASONS = "core/decision/reasons/"
_NOT_OURS_TO_SAY = ("connectors/memory/", "cli/connector_project/")  # for tests; the author's own
_NAMED = ("does not take a row of sink …", "was fenced by another attempt", "(`InDoubtError`)")


def template(written: ast.expr) -> str:
    """Return a text of the code with ``…`` for what is filled in, as the docs write it."""
    if isinstance(written, ast.JoinedStr):
        pieces = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in written.values]
        return "".join(pieces).replace('"', "")
    return str(written.value).replace('"', "") if isinstance(written, ast.Constant) else ""


def errors_of_the_protocol() -> Iterator[str]:
    """Return what each refusal, fence and doubt says that the code can raise, and each reason to refuse."""
    package = ROOT / "airflow_provider_sinks"
    for file in sorted(package.rglob("*.py")):
        if any(folder in file.as_posix() for folder in _NOT_OURS_TO_SAY):
            continue
        kinds = (*_OF_THE_PROTOCOL, "Text") if _REASONS in file.as_posix() else _OF_THE_PROTOCOL
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in kinds and call.args:
                yield template(call.args[0])


@pytest.mark.parametrize("error", sorted({text for text in errors_of_the_protocol() if text.strip(" …")}))
def test_each_error_of_the_protocol_stands_in_the_docs(error: str) -> None:
    patterns = [".*".join(map(re.escape, re.split(r"\s*…\s*", message))) for message in messages()]

    assert any(re.search(pattern, error) for pattern in patterns)


def said_of_lookups() -> list[str]:
    """Return what the page of sinks quotes of a sink that reads its lookups."""
    page = (ROOT / "docs" / "sinks.md").read_text()
    section = page.partition("\n## Lookups\n")[2].partition("\n## ")[0]
    return [" ".join(quote.split()) for quote in re.findall(r"`([^`]*…[^`]*)`", section)]


@pytest.mark.parametrize("said", said_of_lookups())
def test_what_the_docs_quote_of_lookups_is_what_a_sink_says(said: str) -> None:
    file = ROOT / "airflow_provider_sinks" / "streaming" / "lookups.py"
    texts = [
        template(node) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.JoinedStr)
    ]

    assert [text for text in texts if said.replace('"', "") in text]


@pytest.mark.parametrize(
    "about", ["more than one row", "has changed", "has lost", "while the sink ran", "it was"]
)
def test_the_docs_quote_what_a_sink_says_when_a_lookup_is_not_as_it_was(about: str) -> None:
    assert len([said for said in said_of_lookups() if about in said]) == 1


@pytest.mark.parametrize("name", _NAMED)
def test_what_a_writer_may_end_with_is_documented(name: str) -> None:
    assert name in (ROOT / "docs" / "errors.md").read_text()


@pytest.mark.parametrize(
    "file", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=lambda file: file.name
)
def test_links_lead_somewhere(file: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text())

    assert [link for link in links if not (file.parent / link).exists()] == []


@pytest.mark.parametrize(
    "file", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name
)
def test_no_documented_command_holds_a_secret(file: Path) -> None:
    """Airflow writes a command line into its event log, where many may read it."""
    commands = re.findall(r"^ *(?:\$ )?airflow (?:.*\\\n)*.*", file.read_text(), re.MULTILINE)

    assert [command for command in commands if SECRET_IN_CLEAR.search(command)] == []


@pytest.mark.parametrize(
    "command",
    [
        'airflow connections add k --conn-type kafka --conn-extra \'{"sasl.password": "x"}\'',
        "airflow connections add k --conn-password x",
        "airflow connections add k --conn-uri postgresql://me:x@db/shop",
        'airflow connections add k --conn-json \'{"password": "x"}\'',
        "airflow variables set sinks_secret_kafka x",
        'airflow connections add k --conn-extra \'{"ssl.key.pem": "x"}\'',
    ],
)
def test_a_secret_in_a_command_is_seen(command: str) -> None:
    assert SECRET_IN_CLEAR.search(command)


def test_the_docs_say_after_how_long_the_driver_of_a_deleted_dag_ends() -> None:
    minutes = f"{GONE_FOR_SECONDS / 60:g} minutes"

    for page in ("getting-started", "cluster", "submit_sink_job", "troubleshooting"):
        text = " ".join((ROOT / "docs" / f"{page}.md").read_text().split())
        assert re.search(
            rf"{minutes}[^.]*(?:found|find|no file)|every look of {minutes}", text, re.IGNORECASE
        ), page
