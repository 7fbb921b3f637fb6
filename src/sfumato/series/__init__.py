"""A series of numbers, released as it comes (RTR)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.series.realtime_run import release_series as release_series
    from sfumato.series.series_methods import series_method as series_method
    from sfumato.series.series_smoother import smooth_series as smooth_series
    from sfumato.series.series_spec import SeriesSpec as SeriesSpec

__getattr__, __dir__ = lazily(__name__)
