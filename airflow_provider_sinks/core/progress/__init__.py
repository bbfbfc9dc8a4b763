"""What is known to be committed: records, what they say together, and who else remembers."""
