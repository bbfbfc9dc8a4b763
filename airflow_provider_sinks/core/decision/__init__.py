"""From facts to a verdict: start, resume, wait or refuse, and the ways on."""
