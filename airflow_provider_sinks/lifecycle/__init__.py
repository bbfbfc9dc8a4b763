"""What operators and commands share: the verbs of a sink's life, and a dry run of its start."""
