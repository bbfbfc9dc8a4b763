"""What the verbs of a sink's life come to, as plans; and where a sink stands in it."""
