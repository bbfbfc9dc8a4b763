"""Everything that knows Kafka as a target."""
