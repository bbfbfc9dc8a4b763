"""How long Airflow takes to read hundreds of sinks: ``make bench-parse``.

Writes N sinks into YAML files of 50, each with its own query, lookup and dead letters, and does what a DAG
processor does: import, read, serialise. Each reading is a process of its own, the best of three counts.
Seconds are of processor time, so that a busy machine tells the same.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from scripts.demo.table import table

SINKS, PER_FILE, ROUNDS = 500, 50, 3
ENTRY = """\
  - name: sink_{n:04}
    source:
      kafka: {{connection: kafka_prod, topic: events-{n}, schema: "at long, userid string, v{n} double"}}
    lookups: {{users: {{postgres: {{connection: pg_prod, table: public.users, refresh: 60s}}}}}}
    query: >
      SELECT e.userid, u.region, e.v{n} * {n} AS v
      FROM source e LEFT JOIN users u USING (userid) WHERE e.at > {n}
    target: {{kafka: {{connection: kafka_prod, topic: events-{n}-enriched, key: userid}}}}
    dead_letter: events-{n}-dead
"""


def write(folder: Path, sinks: int) -> None:
    """Write the files, and the DAG file that reads them."""
    (folder / "sinks").mkdir()
    for first in range(0, sinks, PER_FILE):
        entries = (ENTRY.format(n=number) for number in range(first, min(first + PER_FILE, sinks)))
        (folder / "sinks" / f"{first:04}.yaml").write_text("sinks:\n" + "".join(entries))
    (folder / "all_sinks.py").write_text(
        "from pathlib import Path\n"
        "from airflow_provider_sinks import dags_from_yaml\n"
        "globals().update(dags_from_yaml(Path(__file__).with_name('sinks')))\n"
    )


def read(folder: Path) -> dict[str, float]:
    """Read the sinks in this process, and say how long each part took."""
    marks = [time.process_time()]
    from airflow.sdk import DAG  # noqa: F401

    marks.append(time.process_time())
    from airflow_provider_sinks.core.spec.sink_file import load_entries
    from airflow_provider_sinks.dag.yaml_files import dags_from_yaml

    load_entries("sinks: [{name: a, source: k/a, target: k/b, query: SELECT * FROM source}]")
    marks.append(time.process_time())
    dags = dags_from_yaml(folder / "sinks")
    marks.append(time.process_time())
    from airflow.serialization.serialized_objects import DagSerialization

    marks.append(time.process_time())
    for dag in dags.values():
        json.dumps(DagSerialization.to_dict(dag), sort_keys=True)
    marks.append(time.process_time())
    names = ("import_airflow", "import_sinks", "read", "import_serialiser", "serialise")
    spans = dict(zip(names, (end - start for start, end in pairwise(marks)), strict=True))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**spans, "dags": len(dags), "memory_mib": memory}


def main(arguments: list[str]) -> None:
    """Print the table."""
    sinks = int(arguments[0]) if arguments else SINKS
    with tempfile.TemporaryDirectory(prefix="sinks-parse-") as name:
        folder = Path(name)
        write(folder, sinks)
        environment = {**os.environ, "AIRFLOW_HOME": str(folder / "home")}
        command = [sys.executable, "-m", "tests.bench.parse", "--read", name]
        rounds = [
            json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
            for _ in range(ROUNDS)
        ]
        best = {part: min(found[part] for found in rounds) for part in rounds[0]}
        before = os.times().children_user
        subprocess.run([sys.executable, "-m", "airflow_provider_sinks", "check", name], check=True)
        checked = os.times().children_user - before
    print(table(_rows(best, checked)))


def _rows(best: dict[str, float], checked: float) -> dict[str, str]:
    sinks = int(best["dags"])
    return {
        "import airflow.sdk": f"{best['import_airflow']:.2f} s",
        "import airflow_provider_sinks": f"{best['import_sinks']:.2f} s",
        f"read {sinks} sinks, make {sinks} DAGs": f"{best['read']:.2f} s",
        "  for each": f"{best['read'] / sinks * 1000:.1f} ms",
        f"serialise {sinks} DAGs (Airflow)": f"{best['serialise']:.2f} s",
        "memory": f"{best['memory_mib']:.0f} MiB",
        "check the folder (two readings)": f"{checked:.1f} s",
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        sys.stdout.write(json.dumps(read(Path(sys.argv[2]))))
    else:
        main(sys.argv[1:])
