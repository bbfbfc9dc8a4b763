"""All arms, by what they are called in tables."""

from __future__ import annotations

from datetime import timedelta

from airflow_provider_sinks.core.spec.sink import Writers
from tests.bench.peers.arm import Arm
from tests.bench.peers.flink_arm import FlinkArm
from tests.bench.peers.kafka_arms import ConsumerLimit, MirrorArm, ProducerLimit, StreamsArm
from tests.bench.peers.loop_arm import LoopArm
from tests.bench.peers.spark_arms import OurArm, SparkArm

OURS = OurArm("ours, per_partition", Writers.PER_PARTITION)
OURS_ARCHIVED = OurArm("ours, with an archive of classes", Writers.PER_PARTITION, archived=True)
OURS_SINGLE = OurArm("ours, single", Writers.SINGLE)
SPARK = SparkArm("Spark's own sink (at-least-once)")
FLINK = FlinkArm("Flink, as many rows per commit", None)
FLINK_5S = FlinkArm("Flink, checkpoints of 5 s", timedelta(seconds=5))
MIRROR = MirrorArm("MirrorMaker 2, default", tuned=False)
MIRROR_TUNED = MirrorArm("MirrorMaker 2, tuned", tuned=True)
STREAMS_100MS = StreamsArm("Kafka Streams, 100 ms", timedelta(milliseconds=100))
STREAMS_5S = StreamsArm("Kafka Streams, 5 s", timedelta(seconds=5))
LOOP = LoopArm("confluent-kafka loop, 2 processes")
PRODUCER = ProducerLimit("limit: ProducerPerformance")
CONSUMER = ConsumerLimit("limit: ConsumerPerformance")

ALL: tuple[Arm, ...] = (
    SPARK,
    OURS,
    OURS_ARCHIVED,
    OURS_SINGLE,
    FLINK_5S,
    FLINK,
    MIRROR,
    MIRROR_TUNED,
    STREAMS_100MS,
    STREAMS_5S,
    LOOP,
    PRODUCER,
    CONSUMER,
)
MAIN: tuple[Arm, ...] = (SPARK, OURS, OURS_SINGLE, FLINK, MIRROR_TUNED, STREAMS_5S, LOOP)
SHORT: tuple[Arm, ...] = (SPARK, OURS, FLINK, MIRROR_TUNED)
FEW: tuple[Arm, ...] = (SPARK, OURS, FLINK)
"""Each run of the others takes minutes that tell little new."""

OURS_0S = OurArm("ours, every: 0s", Writers.PER_PARTITION, "0s")
OURS_100MS = OurArm("ours, every: 100ms", Writers.PER_PARTITION, "100ms")
OURS_1S = OurArm("ours, every: 1s", Writers.PER_PARTITION, "1s")
FLINK_1S = FlinkArm("Flink, checkpoints of 1 s", timedelta(seconds=1))
LATE: tuple[Arm, ...] = (SPARK, OURS_0S, OURS_100MS, OURS_1S, FLINK_1S, STREAMS_100MS)
