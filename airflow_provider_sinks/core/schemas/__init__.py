"""Schemas of values and keys that a registry keeps: their names, their types, what may change. Pure."""
