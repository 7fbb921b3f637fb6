"""Check the certificate of published columns: what follows from public things, computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from sfumato.core.errors import CorruptData
from sfumato.core.guarantees import Disclosure
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import secure
from sfumato.core.verification import Verification, asked_of, reading_certificate
from sfumato.record.publish import (
    SCOPES,
    PublishCertificate,
    publish_fingerprint,
)
from sfumato.record.published_noise import lattice_steps, published_box
from sfumato.record.record_attest import (
    ASKED,
    figures_document,
    noise_of_certificate,
    shells_of,
)
from sfumato.record.record_spec import BEST, RecordSpec
from sfumato.store.attestation import ENVELOPE
from sfumato.tables.closed_file import check_file
from sfumato.tables.columns import read_columns
from sfumato.tables.readers import Table

_FROM_RECORDS = (
    *("delta", "delta_model", "delta_held_out", "delta_mean", "delta_before"),
    "delta_before_mean",
)
"""What attackers reach who know the coupling, or such records: those are not in a certificate."""
_ORDERED = (("delta_model", "delta"), ("delta_held_out", "delta"), ("delta_mean", "delta"))


def verify_publish(document: Mapping[str, Any], table: Table) -> Verification:
    """Compute the certificate of `publish` again, as far as it follows from public things.

    Args:
        document: The certificate, as `store.attestation.read_certificate` reads it.
        table: What was published.

    Raises:
        CorruptData: If it is no certificate of published columns, with the rule that it breaks.
    """
    with reading_certificate("columns"):
        spec = read_spec(document)
        cells = read_columns(table, [*spec.beside.columns, *spec.columns])
        found = _figures(document, spec, cells)
    check_file(found, table, cells)
    return found


def read_spec(document: Mapping[str, Any]) -> RecordSpec:
    """What was asked for; a density that was given is not part of it."""
    asked = asked_of(document, ASKED)
    names = [name for name in ASKED if name not in ("coupling", "domains")]
    given = asked["coupling"] == "given"
    return RecordSpec(
        document["columns"],
        accuracy=document["accuracy"],
        noise=document["noise"],
        **{name: asked[name] for name in names},
        coupling="none" if given else asked["coupling"],
        domains={name: (float(low), float(high)) for name, (low, high) in asked["domains"].items()},
        independent=document["independent"],
        order=document["order"],
        purpose=Purpose(document["purpose"]),
    )


def _figures(
    document: Mapping[str, Any], spec: RecordSpec, cells: Mapping[str, Sequence[Any]]
) -> Verification:
    rows = len(cells[spec.columns[0]])
    _check_told(document, spec)
    found = Verification(document["job"], spec.purpose.value, rows)
    noise = noise_of_certificate(spec, document["sigma"], document["evidence"])
    stated = _stated(document, rows)
    computed: tuple[str, ...] = ()
    if noise is not None:
        steps = lattice_steps(noise, spec.half)
        alone = Disclosure(float(spec.half.min()), published_box(noise, spec.half, steps))
        delta = stated.guarantee
        if document["asked"]["coupling"] == "none":  # an attacker who has never seen such a table
            delta = alone
            computed = ("delta", "delta_model")
            stated = replace(stated, delta_model=alone.delta, way="closed form")
        stated = replace(stated, guarantees=(delta, alone), steps=tuple(steps.tolist()))
        computed = (*computed, "delta_without_correlation", "steps")
        _check_lattice(found, cells, spec.columns, steps)
    if document["coins"] == "fresh":
        own = publish_fingerprint(replace(stated, fingerprint=""), spec, "", secure())
        stated, computed = replace(stated, fingerprint=own), (*computed, "fingerprint")
    else:
        found.unchecked.append("fingerprint: it needs the key that the coins came from")
    due = figures_document(stated)
    shells = None if noise is None else shells_of(noise, document["learnt_from"])
    due |= {"asked": document["asked"], "evidence": shells}
    held = {name: value for name, value in document.items() if name not in ENVELOPE}
    found.compare(held, due, "what it holds")
    _check_order(found, document, spec)
    found.figures = {name: due[name] for name in computed if name in due}
    found.checked.append(f"{', '.join(computed) or 'no figure'}: computed from the noise")
    found.promise = {name: name in computed for name in ("delta", "delta_without_correlation")}
    rest = [name for name in _FROM_RECORDS if name not in computed]
    found.unchecked.append(
        f"{', '.join(rest)}: not checkable from the certificate, for they came from records that "
        "do not leave (--against RAW computes them)"
    )
    if noise is None:
        found.unchecked.append(
            "delta_without_correlation: the best noise was made against the table itself"
        )
    found.unchecked.append("that the coins were fair, and the rows are those of the people")
    return found


def _check_told(document: Mapping[str, Any], spec: RecordSpec) -> None:
    """What may be left out follows from what was asked, not from what is left out."""
    asked, learnt = document["asked"]["coupling"], document["learnt_from"]
    alone = ("table", "history") if spec.noise == BEST else ("nothing",)
    sources = {"none": alone, "given": ("nothing", "table", "history")}
    if learnt not in sources.get(asked, ("table", "history")):
        raise CorruptData(f"learnt_from: it cannot be {learnt!r} with coupling {asked!r}")
    if spec.noise == BEST and (document["evidence"] is None) != (learnt == "table"):
        rule = "missing if, and only if, the best noise was made against the table itself"
        raise CorruptData(f"evidence: it must be {rule}; learnt_from says {learnt!r}")


def _stated(document: Mapping[str, Any], rows: int) -> PublishCertificate:
    """The certificate as it stands, but for what there is one text of."""
    least = float(min(document["accuracy"]))
    own = [part.name for part in fields(PublishCertificate)]
    given = {name: document[name] for name in own if name in document}
    for name in ("columns", "kept", "independent", "sigma", "accuracy", "steps", "remarks"):
        given[name] = tuple(document[name])
    deltas = [document[name] for name in ("delta", "delta_without_correlation")]
    return PublishCertificate(
        **given
        | {
            "guarantees": tuple(Disclosure(least, delta) for delta in deltas),
            "scopes": SCOPES,
            "rows": rows,
            "purpose": Purpose(document["purpose"]),
            **dict.fromkeys(("cost", "silence", "gain")),
            "loss": "",
        }
    )


def _check_lattice(
    found: Verification, cells: Mapping[str, Sequence[Any]], names: Sequence[str], steps: Any
) -> None:
    """Every value is a point of the lattice, written in the one way that it has."""
    for name, step in zip(names, np.asarray(steps).tolist(), strict=True):
        for row, cell in enumerate(cells[name], start=1):
            value = float(cell)
            if not (value / step).is_integer() or (isinstance(cell, str) and repr(value) != cell):
                found.note("table", f"row {row} of {name!r} is no point of the lattice")


def _check_order(found: Verification, document: Mapping[str, Any], spec: RecordSpec) -> None:
    """What must be no less than something else, whatever the records were."""
    for less, more in _ORDERED:
        if document[less] is not None and document[less] > document[more]:
            found.note(less, f"it must be at most {more}")
    if spec.target_delta is not None and document["delta"] > spec.target_delta:
        found.note("delta", f"it is over the target {spec.target_delta}")
    if document["delta"] < min(document["delta_without_correlation"], spec.target_delta or 1.0):
        found.note("delta", "who knows the coupling does at least as well as one who does not")
