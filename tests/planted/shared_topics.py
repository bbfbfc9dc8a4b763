"""Sinks of Airflow DAGs that write to each other's topics."""

from airflow_provider_sinks import Sink, sink_dag

orders = Sink(name="orders", source="k/orders", target="k/orders-out")
prices = Sink(name="prices", source="k/prices", target="k/prices-out", dead_letter="prices-dead")
returns = Sink(name="returns", source="k/returns", target="k/orders-out")  # planted: shared-topic
stock = Sink(name="stock", source="k/s", target="k/s-out", dead_letter="prices-dead")  # planted: shared-dead-letter
sales = Sink(name="sales", source="k/sales", target="k/sales-out", progress="orders-out")  # planted: shared-progress
for sink in (orders, prices, returns, stock, sales):
    globals()[sink.name] = sink_dag(sink)
