"""The catalogue of refusals, by what they are about.

Each file has all that belongs to its reasons: how facts are classified, the short table that judges them,
and one entry for each reason: what it says, the ways on, how to mend it.
"""
