"""The benchmark: ours beside Spark's own Kafka sink, in one run, as ratios. ``make bench`` runs it."""
