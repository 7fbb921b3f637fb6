"""A released series and its certificate: which attack fits, and what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sfumato.attacks.measurement_recovery import recovered_measurements
from sfumato.attacks.particle_attack import reconstruct_by_particles
from sfumato.attacks.series_attack import SeriesAttack, reconstruct_series, seen_values
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.filters import plain
from sfumato.series.realtime import Realtime
from sfumato.series.series_audit import read_rules
from sfumato.series.series_methods import series_method


@dataclass(frozen=True, slots=True, eq=False)
class CertifiedSeriesAttack:
    """What was made of a released series.

    Attributes:
        released: What left.
        best: The attack that fits its noise and what is known.
        by: Which that is.
        noise: Deviation of the noise of a measurement.
    """

    released: Floats
    best: SeriesAttack
    by: str
    noise: float

    def left_error(self, truth: Floats) -> float:
        """Root of the mean squared error of what left, taken as it is: the receiver's filter."""
        off = (self.released - truth)[np.isfinite(self.released)]
        return float(np.sqrt(np.square(off).mean()))


def attack_series(
    released: Sequence[float | None],
    rules: dict[str, Any],
    where: str,
    *,
    known: Sequence[float] | None = None,
) -> CertifiedSeriesAttack:
    """Reconstruct a series from what `realtime` released and the rules of its certificate.

    Estimates are undone to their measurements first. With other records of the same kind the
    process is learnt from them: particles for Laplace noise, else the smoother; without, many
    processes are tried.

    Args:
        released: What left; None where nothing did.
        rules: Of the certificate.
        where: What messages call it.
        known: Other records to learn the process from.

    Raises:
        InvalidParameter: If what left cannot be undone: it was clamped, or its filter is not known.
    """
    spec, method, _ = read_rules(rules, where)
    if not isinstance(method, Realtime):
        rule = "be one whose outputs are measurements with noise, filtered or not"
        raise InvalidParameter("method", spec.method, rule)
    seen = seen_values(list(released))
    if spec.interval is not None:
        if method.estimate.name != "plain":
            rule = "not be clamped after a filter: what was cut off is not known"
            raise InvalidParameter("range", spec.interval, rule)
        # A value at an end may have been anything beyond it.
        seen = np.where(np.isin(seen, spec.interval), np.nan, seen)
    elif method.estimate.name != "plain":
        own = series_method(spec)
        if not isinstance(own, Realtime) or own.estimate.name != method.estimate.name:
            rule = "be that of the method: one with a period or a history is not in a certificate"
            raise InvalidParameter("estimate", method.estimate.name, rule)
        seen = recovered_measurements(list(released), own)
    bare = replace(method, estimate=plain())
    noise = float(np.sqrt(bare.variances[: len(seen)].mean()))
    if known is None:
        found, by = reconstruct_series(seen, bare), "many processes tried"
    else:
        process = Autoregressive.fit(np.array(known))
        laplace = all(isinstance(one, LaplaceNoise) for one in bare.noises[: len(seen)])
        if laplace:
            found, by = reconstruct_by_particles(seen, bare, process), "particles"
        else:
            found, by = reconstruct_series(seen, bare, process=process), "smoother"
        by = f"{by} of the process of known records"
    return CertifiedSeriesAttack(seen_values(list(released)), found, by, noise)
