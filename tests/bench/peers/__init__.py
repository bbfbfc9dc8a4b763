"""Our sinks beside every peer that copies a Kafka topic, in one run. ``make bench`` runs it."""
