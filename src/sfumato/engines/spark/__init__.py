"""Releases inside Apache Spark: `sf.spark`; pyspark is the extra `spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.engines.spark.batch_release import release as release

__getattr__, __dir__ = lazily(__name__)
