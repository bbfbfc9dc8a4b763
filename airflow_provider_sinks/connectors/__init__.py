"""The targets: the interface that every target implements, then one file per target."""
