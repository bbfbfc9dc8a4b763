"""The Delta connector: data files by the executors, one commit of the table's log by the driver."""
