"""What the README and the docs show is what the code does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from airflow_provider_sinks.core.decision.classify import ProgressSeen, ResourceSeen, WitnessSeen
from airflow_provider_sinks.core.decision.decide import DECISIONS, Step
from airflow_provider_sinks.core.decision.ways import WAYS, Reason, Way
from airflow_provider_sinks.core.spec.sink_file import load_yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

ANYTHING = tuple(WitnessSeen)
RECORDS = {
    "not readable": ProgressSeen.UNKNOWN,
    "none": ProgressSeen.NONE,
    "deleted": ProgressSeen.EMPTIED,
    "deleted in part": ProgressSeen.IN_PART,
    "nothing written": ProgressSeen.UNWRITTEN,
    "rows written": ProgressSeen.WRITTEN,
}
DATA = {
    "any": tuple(ResourceSeen),
    "there": (ResourceSeen.PRESENT, ResourceSeen.GREW, ResourceSeen.REPLACED),
    "missing": (ResourceSeen.MISSING,),
    "not visible": (ResourceSeen.UNKNOWN,),
    "the recorded one": (ResourceSeen.PRESENT,),
    "grown": (ResourceSeen.GREW,),
    "replaced": (ResourceSeen.REPLACED,),
}
REMEMBERED = {
    "anything": ANYTHING,
    "no rows": (WitnessSeen.SILENT,),
    "no more": (WitnessSeen.SILENT, WitnessSeen.BROKER),
    "rows": (WitnessSeen.AHEAD,),
    "no rows, but the broker commits": (WitnessSeen.BROKER,),
    "more": (WitnessSeen.AHEAD,),
}
REFUSALS = {
    "progress is lost": Reason.PROGRESS_LOST,
    "progress was emptied": Reason.PROGRESS_EMPTIED,
    "progress was emptied in part": Reason.PROGRESS_EMPTIED_IN_PART,
    "progress was rolled back": Reason.PROGRESS_ROLLED_BACK,
    "output is lost": Reason.OUTPUT_LOST,
    "output was replaced": Reason.OUTPUT_REPLACED,
}
WITHOUT_RECORD = (ProgressSeen.NONE, ProgressSeen.EMPTIED)


def rows(text: str, columns: int) -> Iterator[list[str]]:
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == columns:
            yield cells


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def verdict_of(records: ProgressSeen, cell: Step | Reason) -> str:
    if isinstance(cell, Reason):
        return "refuse"
    if cell is Step.WAIT:
        return "wait"
    return "start" if records in WITHOUT_RECORD else "resume"


def test_the_readme_has_every_cell_of_the_decision_table_once() -> None:
    seen: dict[tuple[ProgressSeen, ResourceSeen, WitnessSeen], str] = {}
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
DAG_PAGE = "".join((ROOT / "docs" / page).read_text() for page in ("dags.md", "sinks-commands.md"))


@pytest.mark.parametrize(("file", "name", "shown"), QUOTES.findall(DAG_PAGE), ids=lambda text: text[:30])
def test_the_docs_quote_the_example_dags_as_they_are(file: str, name: str, shown: str) -> None:
    marked = rf"^# \[START {name}\]\n(.*)^# \[END {name}\]\n"
    found = re.search(marked, (ROOT / file).read_text(), re.MULTILINE | re.DOTALL)

    assert found is not None
    assert shown == found[1]


def test_every_example_dag_is_quoted() -> None:
    files = {f"dags/{file.name}" for file in (ROOT / "dags").iterdir() if file.is_file()}

    assert {file for file, _, _ in QUOTES.findall(DAG_PAGE)} == files


def test_the_ways_on_are_documented() -> None:
    text = (ROOT / "docs" / "decision-table.md").read_text()
    named = {name for cells in rows(text, 3) for name in re.findall(r"`(\w+)`", cells[1])}

    assert named == set(Way) == {way for ways in WAYS.values() for way in ways}


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


@pytest.mark.parametrize(
    "file", [ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=lambda file: file.name
)
def test_links_lead_somewhere(file: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", file.read_text())

    assert [link for link in links if not (file.parent / link).exists()] == []
