"""Connections to schema registries: how they are read, altered and judged."""
