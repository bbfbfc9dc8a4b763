"""Schema registries that speak Confluent's API: what it takes to connect, and a client."""
