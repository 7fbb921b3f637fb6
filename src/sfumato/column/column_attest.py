"""The certificate of a column as a file: its figures, what was asked, and what they follow from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.column.column_certificate import ColumnCertificate, Privatized
from sfumato.column.column_spec import ColumnSpec
from sfumato.column.evidence_document import evidence_document
from sfumato.column.knowledge import Knowledge, Records
from sfumato.column.mechanism_registry import mechanism_named
from sfumato.core.certificate import certificate_document
from sfumato.store.attestation import attested
from sfumato.tables.named_loss import NAMED_LOSSES

JOB = "privatize"
ASKED = (
    *("epsilon", "delta", "prior", "learnt_from", "loss", "ldp", "kind", "values", "interval"),
    *("points", "radius", "ratio", "missing", "keep", "identity"),
)
"""What was asked for, beside what the certificate says anyway."""


def column_document(done: Privatized, commitment: str | None = None) -> dict[str, Any]:
    """The certificate of a released column as a JSON object; `sfumato verify` checks it.

    It holds priors and channels where they are public. Where they were learnt from the very rows,
    or predicted from features, it holds neither, nor any digest of them: small tables are guessed
    from less.

    Args:
        done: What `privatize` returned.
        commitment: To the key of the coins (`key_commitment`), if they were keyed.
    """
    told = figures_document(done.certificate)
    held = {"asked": asked_document(done.spec, done.knowledge), "evidence": _evidence(done)}
    return attested(JOB, told | held, done.spec.randomness, commitment)


def figures_document(certificate: ColumnCertificate) -> dict[str, Any]:
    """The certificate by itself, as it was always told."""
    lip, ldp = certificate.lip, certificate.ldp
    levels = {"lip": lip.epsilon, "ldp": ldp.epsilon, "delta": lip.delta}
    return certificate_document(certificate) | levels


def has_public_priors(knowledge: Knowledge) -> bool:
    """Whether what is known of the rows may be told: it was not learnt from them, nor of each."""
    return knowledge.records is Records.PUBLIC and not knowledge.features


def has_evidence(mechanism: str, *, public: bool) -> bool:
    """Whether a certificate tells what is sampled: where no prior of the rows shaped it."""
    return public or mechanism_named(mechanism).prior_free


def asked_document(spec: ColumnSpec, knowledge: Knowledge) -> dict[str, Any]:
    """What was asked for: choices of whoever released, and nothing of the rows."""
    learnt = isinstance(spec.prior, str) and not _is_file(spec.prior)
    source = "given" if not learnt else str(knowledge.records)
    loss = spec.loss
    if loss is not None and loss not in NAMED_LOSSES:
        loss = Path(loss).name  # where it lay is nobody's business
    return {
        "epsilon": spec.epsilon,
        "delta": spec.delta,
        "prior": spec.prior if learnt else "given",
        "learnt_from": source,
        "loss": loss,
        "ldp": spec.ldp,
        "kind": spec.kind,
        "values": None if spec.values is None else [str(value) for value in spec.values],
        "interval": None if spec.interval is None else list(spec.interval),
        "points": spec.points,
        "radius": spec.radius,
        "ratio": spec.ratio,
        "missing": str(spec.missing),
        "keep": list(spec.pass_through.columns),
        "identity": spec.identity,
    }


def _is_file(prior: str) -> bool:
    return prior not in ("estimate", "mixture") and not prior.startswith("features:")


def _evidence(done: Privatized) -> dict[str, Any] | None:
    knowledge, public = done.knowledge, has_public_priors(done.knowledge)
    if not has_evidence(done.spec.mechanism, public=public):
        return None
    return evidence_document(done.sampler.evidence, knowledge.groups, public=public)
