"""The names that a form suggests: read from files, without running them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from airflow_provider_sinks.forms import known_sinks

DAGS = Path(__file__).parents[2] / "dags"
YAML = "sinks:\n  - name: {name}\n    source: k/a\n    target: k/b\n"


def test_the_example_dags_suggest_their_sinks() -> None:
    assert known_sinks(DAGS) == [
        "clicks_by_hand",
        "clicks_clean",
        "orders_avro",
        "pageviews_clean",
        "pageviews_enriched",
        "pageviews_table",
        "views_in_delta",
        "views_in_iceberg",
        "views_in_kafka",
        "views_in_postgres",
    ]


@pytest.mark.parametrize(
    ("file", "text", "names"),
    [
        pytest.param("a.py", 'Sink(name="orders")', ["orders"], id="a sink in Python"),
        pytest.param(
            "a.py", 'import x\nx.Sink(\n  source="k/a",\n  name="orders",\n)', ["orders"], id="by module"
        ),
        pytest.param(
            "a.py", 'Sink(name="b")\nf(Sink(name="a"))\nSink(name="b")', ["a", "b"], id="sorted, once"
        ),
        pytest.param("a.py", 'Sink(name=f"orders_{x}")', [], id="a name that is made"),
        pytest.param("a.py", 'Sink(name="no name of a sink")', [], id="no name of a sink"),
        pytest.param("a.py", 'MySink(name="orders")', [], id="another class"),
        pytest.param("a.py", 'Sink(name="orders"', [], id="broken Python"),
        pytest.param("a.py", 'Sink(name="a\0b")', [], id="a null byte"),
        pytest.param("a.yaml", YAML.format(name="orders"), ["orders"], id="a sink in YAML"),
        pytest.param("a.yml", YAML.format(name="{{ x }}"), [], id="a template"),
        pytest.param("a.yaml", YAML.format(name=17), [], id="a number"),
        pytest.param("a.yaml", "sinks: [", [], id="broken YAML"),
        pytest.param("a.yaml", "sinks: !!python/object:os.system x", [], id="YAML that would run"),
        pytest.param("a.txt", 'Sink(name="orders")', [], id="another kind of file"),
        pytest.param(".git/a.py", 'Sink(name="orders")', [], id="a hidden folder"),
        pytest.param("team/a.py", 'Sink(name="orders")', ["orders"], id="a folder below"),
    ],
)
def test_names_count_where_they_stand_as_they_are(
    tmp_path: Path, file: str, text: str, names: list[str]
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)

    assert known_sinks(tmp_path) == names


def test_what_cannot_be_read_suggests_nothing(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b'# caf\xe9\nSink(name="orders")')
    (tmp_path / "nowhere.py").symlink_to(tmp_path / "gone.py")

    assert known_sinks(tmp_path) == known_sinks(tmp_path / "missing") == []


def test_a_folder_is_read_without_running_anything(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('raise SystemExit\nSink(name="orders")')

    assert known_sinks(tmp_path) == ["orders"]


def test_a_thousand_files_cost_less_than_a_second_of_work(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"{number}.py").write_text(
            "import airflow\n" * 50 + f'Sink(name="s{number}")' * (number % 2)
        )
    started = time.process_time()

    assert len(known_sinks(tmp_path)) == 500
    assert time.process_time() - started < 1
