"""The certificate of published columns as a file: what was asked, and the noise that was added."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.core.certificate import certificate_document
from sfumato.record.publish import PublishCertificate, Published
from sfumato.record.record_spec import BEST, RecordSpec
from sfumato.record.round_noise import RoundNoise
from sfumato.record.vector_noise import VectorNoise
from sfumato.store.attestation import attested

JOB = "publish"
ASKED = (
    *("sigma", "coupling", "target_delta", "attacker", "correlation", "domains", "degree"),
    *("missing", "keep", "identity"),
)
"""What was asked for, beside what the certificate says anyway."""


def publish_document(done: Published, commitment: str | None = None) -> dict[str, Any]:
    """The certificate of published columns as a JSON object; `sfumato verify` checks it.

    Deviations of the noise stand in it; the shells of the best round noise only where the density
    that they were made against is public: of the very table they would tell more than two digits.

    Args:
        done: What `publish` returned.
        commitment: To the key of the coins (`key_commitment`), if they were keyed.
    """
    told = figures_document(done.certificate)
    shells = shells_of(done.noise, done.certificate.learnt_from)
    held = {"asked": asked_document(done.spec), "evidence": shells}
    return attested(JOB, told | held, done.spec.randomness, commitment)


def figures_document(certificate: PublishCertificate) -> dict[str, Any]:
    """The certificate by itself, as it was always told."""
    return {
        "delta": certificate.guarantee.delta,
        "delta_without_correlation": certificate.guarantee_without_correlation.delta,
        **certificate_document(certificate),
    }


def shells_of(noise: VectorNoise, learnt_from: str) -> dict[str, Any] | None:
    """The shells of a round noise; None of others, which follow from their deviations."""
    if not isinstance(noise, RoundNoise) or learnt_from == "table":
        return None
    return {"edges": noise.edges.tolist(), "masses": noise.masses.tolist()}


def asked_document(spec: RecordSpec) -> dict[str, Any]:
    """What was asked for: choices of whoever published, and nothing of the rows."""
    correlation = spec.correlation
    return {
        "sigma": None if spec.sigma is None else np.asarray(spec.sigma).tolist(),
        "coupling": spec.coupling if isinstance(spec.coupling, str) else "given",
        "target_delta": spec.target_delta,
        "attacker": spec.attacker,
        "correlation": None if correlation is None else np.asarray(correlation).tolist(),
        "domains": {name: list(ends) for name, ends in sorted((spec.domains or {}).items())},
        "degree": spec.degree,
        "missing": str(spec.missing),
        "keep": list(spec.beside.columns),
        "identity": spec.identity,
    }


def noise_of_certificate(
    spec: RecordSpec, sigma: Any, shells: dict[str, Any] | None
) -> VectorNoise | None:
    """The noise that a certificate says was added; None if it must not say it."""
    scales = np.asarray(sigma, dtype=np.float64)
    if spec.noise != BEST:  # it follows from its deviations, whatever shells are told
        return spec.noise_at(scales)
    if shells is None:
        return None
    edges, masses = (np.asarray(shells[name], np.float64) for name in ("edges", "masses"))
    return RoundNoise(scales, edges, masses)
