"""What targets have in common whose tables are data files and a log of snapshots: Iceberg and Delta."""
