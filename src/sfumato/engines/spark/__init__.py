"""Releases inside Apache Spark: `sf.spark`; pyspark is the extra `spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.engines.spark.batch_release import release as release
    from sfumato.engines.spark.spark_audit import SparkAudit as SparkAudit
    from sfumato.engines.spark.spark_audit import audit as audit
    from sfumato.engines.spark.spark_fit import fit as fit
    from sfumato.engines.spark.spark_learn import SparkLearning as SparkLearning
    from sfumato.engines.spark.spark_learn import learn as learn
    from sfumato.engines.spark.spark_recover import SparkRecovery as SparkRecovery
    from sfumato.engines.spark.spark_recover import recover as recover
    from sfumato.engines.spark.stream_release import release_stream as release_stream
    from sfumato.engines.spark.unreadable_events import dead_letters as dead_letters

__getattr__, __dir__ = lazily(__name__)
