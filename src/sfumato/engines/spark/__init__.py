"""Releases inside Apache Spark: `sf.spark`; pyspark is the extra `spark`."""
