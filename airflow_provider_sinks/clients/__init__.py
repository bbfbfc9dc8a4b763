"""The only files that talk to a service, one file each."""
