"""Orders as Avro of a schema registry; ``make demo`` has a change refused, and replays what was set aside."""

# [START avro]
from airflow_provider_sinks import Sink, kafka, sink_dag

orders = Sink(
    name="orders_avro",
    source=kafka("kafka_prod", "orders", schema="id long, what string, amount int"),
    select=["id", "what", "amount"],
    target=kafka("kafka_prod", "orders-avro", format="avro", registry="registry_prod", key="id"),
    dead_letter={"topic": "orders-dead"},
)
dag = sink_dag(orders)  # a schema that the registry would not take is refused before the start
# [END avro]
