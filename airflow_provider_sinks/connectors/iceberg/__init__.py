"""The Iceberg connector: data files by the executors, one validated publication by the driver."""
