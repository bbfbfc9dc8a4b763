"""What benchmarks have kept in their folders, to be told together, or when one was broken off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.bench.peers.figures import Audit, Figures, Latency
from tests.bench.peers.results import Results, Run
from tests.bench.peers.scale import Scale
from tests.bench.peers.soak import Footprint

_RUNS, _OF_OURS = "runs.jsonl", "ours.json"


def keep(folder: Path, results: Results) -> None:
    """Write what was found so far."""
    (folder / _RUNS).write_text("".join(f"{json.dumps(asdict(run))}\n" for run in results.runs))
    found = {name: value for name, value in asdict(results).items() if name != "runs"}
    (folder / _OF_OURS).write_text(json.dumps(found))


def stored(folders: Iterable[Path]) -> Results:
    """Return what was found in all of them; of what has no rounds, what the last one has.

    Rounds go on from folder to folder: a ratio has both of its figures from one sitting.
    """
    results = Results()
    for folder in folders:
        before = max((run.number for run in results.runs), default=0)
        runs = [_run(json.loads(line)) for line in (folder / _RUNS).read_text().splitlines()]
        results.runs += [replace(run, number=before + run.number) for run in runs]
        if (file := folder / _OF_OURS).exists():
            _add(results, json.loads(file.read_text()))
    return results


def _run(data: Mapping[str, Any]) -> Run:
    figures = data["figures"]
    return Run(**{**data, "figures": figures and _figures(figures), "notes": tuple(data["notes"])})


def _figures(data: Mapping[str, Any]) -> Figures | Latency:
    if "p50_ms" in data:
        return Latency(**data)
    audit = data["audit"]
    return Figures(**{**data, "audit": audit and Audit(**audit)})


def _add(results: Results, found: Mapping[str, Any]) -> None:
    results.bytes_after += [
        {int(epochs): held for epochs, held in one.items()} for one in found["bytes_after"]
    ]
    results.scale |= {int(partitions): Scale(**one) for partitions, one in found["scale"].items()}
    results.look_ups = found["look_ups"] or results.look_ups
    results.footprints = [Footprint(**one) for one in found["footprints"]] or results.footprints
