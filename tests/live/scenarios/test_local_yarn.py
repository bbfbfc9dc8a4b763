"""The local YARN by itself, and what our client makes of a real resource manager."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sinks.clients.yarn import YarnClient
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.launch.yarn import AppState, Fate, fate, sink_tag
from airflow_provider_sinks.local.jars import HADOOP_VERSION
from airflow_provider_sinks.local.processes import session_members
from airflow_provider_sinks.local.yarn import YarnCluster
from tests.live.cluster import submit_to

_COUNT = """\
from pyspark.sql import SparkSession

assert SparkSession.builder.getOrCreate().range(100).count() == 100
"""
_WAIT = "import time\n\ntime.sleep(600)\n"


def test_a_driver_runs_in_a_container_and_is_found_by_its_tag(yarn: YarnCluster, tmp_path: Path) -> None:
    application = tmp_path / "count.py"
    application.write_text(_COUNT)

    submit_to(yarn, tmp_path, str(application), tag="sink:Count,another").wait()

    client = YarnClient(yarn.url)
    (found,) = client.tagged(sink_tag("Count"))
    assert (found.state, fate(found)) == (AppState.FINISHED, Fate.SUCCEEDED)
    assert found.tags == {"sink:count", "another"}
    assert client.alive(sink_tag("Count")) == ()
    assert client.application(found.id) == found
    assert client.version() == f"Hadoop {HADOOP_VERSION}, STARTED"


def test_a_killed_driver_is_over_and_a_stranger_is_unknown(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    application = tmp_path / "wait.py"
    application.write_text(_WAIT)
    with YarnCluster.start(tmp_path_factory.mktemp("yarn")) as cluster:
        client = YarnClient(cluster.url)
        first, second = (submit_to(cluster, tmp_path / tag, str(application), tag=tag) for tag in "ab")
        first.wait_until(lambda: len(cluster.container_sessions()) == 2)
        sessions = cluster.container_sessions()
        (found,) = client.alive("a")

        client.kill(found.id)
        first.wait_until(lambda: fate(client.application(found.id)) is Fate.KILLED)
        client.kill(found.id)

        assert client.application("application_1_0001") is None
        assert [app.id for app in client.alive("b")] != [found.id]
        first.end()
        second.end()

    assert not any(map(session_members, sessions))  # containers do not outlive their cluster
    with pytest.raises(UnavailableError, match=f"at {cluster.url} cannot be asked"):
        client.alive("b")
