"""Releases inside Apache Spark: `sf.spark`; pyspark is the extra `spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.engines.spark.batch_release import release as release
    from sfumato.engines.spark.stream_release import release_stream as release_stream

__getattr__, __dir__ = lazily(__name__)
