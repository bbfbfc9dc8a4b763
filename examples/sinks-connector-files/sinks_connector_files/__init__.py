"""A target of airflow-provider-sinks: tables of Parquet files in folders, committed by a log of manifests."""
