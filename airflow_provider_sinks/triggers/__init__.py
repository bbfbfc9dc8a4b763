"""The triggers: the waiting halves of deferred tasks. Their paths and arguments are a stored format."""
