"""What Airflow shows of a sink that Spark's own writer writes: Spark's guarantee, in the same sentence."""

from __future__ import annotations

import json

from airflow_provider_sinks import Sink, sink_dag, spark_format
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind

_SINK = Sink(name="orders", source="kafka/orders", target=spark_format("noop"), checkpoint="/kept")


def test_a_plan_ends_with_it() -> None:
    from airflow_provider_sinks.lifecycle.dry_run import DryRun

    seen = DryRun(Verdict(VerdictKind.START, "it would start"), None, _SINK.engine_guarantee)

    assert str(seen).splitlines()[-1] == f"guarantee: {_SINK.engine_guarantee}"
    assert json.loads(json.dumps(seen.to_mapping()))["guarantee"] == _SINK.engine_guarantee


def test_a_description_has_it() -> None:
    from airflow_provider_sinks.cli.showing import _described

    assert _described(_SINK)["guarantee"] == _SINK.engine_guarantee


def test_its_dag_claims_nothing_else() -> None:
    dag = sink_dag(_SINK)

    assert dag.description == "orders to noop of orders, as Spark guarantees"
    assert _SINK.engine_guarantee in str(dag.doc_md)
    assert "exactly once" not in str(dag.doc_md)
