"""DAGs of sinks: made from Python and YAML."""
