"""Parquet files by table and night, the DuckDB views over them, and queries."""
