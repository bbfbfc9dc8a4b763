"""The options of connections: which there are, what is secret, and whether they changed."""
