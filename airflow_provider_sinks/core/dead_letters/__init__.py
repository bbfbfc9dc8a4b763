"""Dead letters: their shape, how many are too many, which of them are replayed. Pure."""
