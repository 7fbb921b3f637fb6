"""Check the certificate of a released column: every figure again, from what it holds and left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import msgspec
import numpy as np

from sfumato.column.column_attest import ASKED, figures_document, has_evidence
from sfumato.column.column_certificate import column_certificate
from sfumato.column.column_evidence import ColumnEvidence
from sfumato.column.column_learning import LEARNT_HERE
from sfumato.column.column_release import release_fingerprint, release_plan
from sfumato.column.column_sampler import ColumnSampler, Drawn, reported
from sfumato.column.column_spec import ColumnSpec
from sfumato.column.evidence_document import read_evidence
from sfumato.column.knowledge import Knowledge, Records
from sfumato.core.arrays import Ints
from sfumato.core.errors import CorruptData
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import secure
from sfumato.core.verification import Verification, asked_of, reading_certificate
from sfumato.models.encoding import Symbols
from sfumato.noise.frequency import KaryResponse
from sfumato.noise.lattice import Lattice
from sfumato.store.attestation import ENVELOPE
from sfumato.tables.closed_file import check_file
from sfumato.tables.columns import read_columns
from sfumato.tables.frames import written_columns
from sfumato.tables.pass_through import Groups
from sfumato.tables.readers import Table

_FIGURES = ("lip", "ldp", "cost", "silence", "gain", "rounding", "outputs", "never", "fingerprint")
"""What follows from priors and channels."""
_SHOWN = ("lip", "ldp", "delta", "cost", "silence", "gain")
_MARK = "\0"


def verify_column(document: Mapping[str, Any], table: Table) -> Verification:
    """Compute the certificate of `privatize` again, from what it holds and the released table.

    Args:
        document: The certificate, as `store.attestation.read_certificate` reads it.
        table: What was released.

    Raises:
        CorruptData: If it is no certificate of a column, with the rule that it breaks.
    """
    with reading_certificate("a column"):
        spec = read_spec(document)
        names = [*spec.pass_through.columns, spec.column]
        cells = read_columns(table, names)
        found = _figures(document, spec, cells, table.path)
    check_file(found, table, cells)
    return found


def read_spec(document: Mapping[str, Any]) -> ColumnSpec:
    """What was asked for; a prior that was given is not part of it."""
    asked = asked_of(document, ASKED)
    if (asked["prior"] == "given") != (asked["learnt_from"] == "given"):
        raise CorruptData("asked.learnt_from: it must be `given` if, and only if, the prior was")
    names = [name for name in ASKED if name not in ("prior", "learnt_from", "interval")]
    ends = asked["interval"]
    return ColumnSpec(
        document["column"],
        **{name: asked[name] for name in names},
        prior="estimate" if asked["prior"] == "given" else asked["prior"],
        interval=None if ends is None else (float(ends[0]), float(ends[1])),
        mechanism=document["mechanism"],
        independent=document["independent"],
        order=document["order"],
        purpose=Purpose(document["purpose"]),
    )


def _figures(
    document: Mapping[str, Any], spec: ColumnSpec, cells: Mapping[str, list[Any]], source: str
) -> Verification:
    """Every field of the certificate again; what does not follow from public things is named."""
    values = cells[spec.column]
    found = Verification(document["job"], spec.purpose.value, len(values))
    evidence, knowledge = known_of(document, spec, cells, source)
    public = _is_public(document, spec)
    drawn = _drawn(found, document, evidence, values, knowledge.owner)
    if evidence is not None and public:
        sampler = ColumnSampler.of(evidence, knowledge.shares, spec.mechanism, _undrawn)
        plan = release_plan(spec, knowledge)
        own = release_fingerprint(spec, secure(), plan, knowledge, sampler)
        sampler = replace(sampler, fingerprint=own)
    else:
        sampler = _stated(document)
        if evidence is not None:
            sampler = replace(sampler, ldp=evidence.local)
    due = figures_document(column_certificate(spec, knowledge, sampler, drawn))
    due["remarks"] = remarks_due(document["remarks"], due["remarks"], public=public)
    computed = _FIGURES if public else ("ldp",) if evidence is not None else ()
    if not public:
        due |= {name: document[name] for name in ("gain", "never")}
        if knowledge.records is Records.PUBLIC:
            due["outputs"] = document["outputs"]
    due |= {name: document[name] for name in ("asked", "evidence")}
    stated = {name: value for name, value in document.items() if name not in ENVELOPE}
    found.compare(stated, due, "what it holds")
    learnt_here = knowledge.records is Records.PRIVATE
    if (LEARNT_HERE in document["remarks"]) != learnt_here:
        found.note("remarks", f"that the prior was learnt here must {_said(learnt_here)}")
    found.figures = {name: due[name] for name in _SHOWN if public or name in computed}
    found.promise = {"lip": public, "ldp": evidence is not None}
    if computed:
        found.checked.append(f"{', '.join(computed)}: computed from what it holds")
    withheld = [name for name in _FIGURES if name not in computed]
    if withheld:
        why = "were predicted from features" if spec.features else "were learnt from these rows"
        found.unchecked.append(
            f"{', '.join(withheld)}: not checkable from the certificate, for priors {why} "
            "(--against RAW computes them)"
        )
    found.unchecked.append("that the coins were fair, and the rows are those of the people")
    return found


def _is_public(document: Mapping[str, Any], spec: ColumnSpec) -> bool:
    """Whether priors may be told: it follows from what was asked, not from what is left out."""
    return document["asked"]["learnt_from"] != Records.PRIVATE and not spec.features


def known_of(
    document: Mapping[str, Any], spec: ColumnSpec, cells: Mapping[str, list[Any]], source: str
) -> tuple[ColumnEvidence | None, Knowledge]:
    """The evidence, and what was known of the column, as far as the certificate says it."""
    ends, size = document["interval"], document["size"]
    lattice = None if ends is None else Lattice(float(ends[0]), float(ends[1]), size)
    where: Symbols | Lattice = lattice or Symbols.of(str(place) for place in range(size))
    even, learnt = np.full((1, size), 1 / size), document["asked"]["learnt_from"]
    unknown = Knowledge(
        where,
        even,
        document["prior"],
        floor=float(document["floor"]),
        records=Records.PUBLIC if learnt == "given" else Records(learnt),
        remarks=(_MARK,),
    )
    public = _is_public(document, spec)
    if document["evidence"] is None:
        if has_evidence(spec.mechanism, public=public):
            why = "priors are public" if public else f"{spec.mechanism} looks at no prior"
            raise CorruptData(f"evidence: missing, where {why} and it must be told")
        return None, unknown
    if not has_evidence(spec.mechanism, public=public):
        raise CorruptData("evidence: it was made for priors of the rows, and must not be told")
    evidence, keys = read_evidence(
        document["evidence"],
        mechanism=spec.mechanism,
        loss=document["loss"],
        budget=LIP(spec.epsilon, document["delta"]),
        lattice=lattice,
    )
    if bool(document["evidence"]["priors"]) != public:
        why = "missing, where they are public" if public else "of the rows, and must not be told"
        raise CorruptData(f"evidence.priors: {why}")
    if not public:
        return evidence, replace(unknown, where=evidence.where)
    priors = np.asarray(evidence.priors[evidence.of_group])
    known = replace(
        unknown,
        where=evidence.where,
        priors=priors,
        within=evidence.within,
        numbers=evidence.numbers,
    )
    linked = spec.pass_through.linked
    if (keys is None) == bool(linked):
        raise CorruptData("evidence.groups: they must be those of the kept columns")
    if keys is None:
        return evidence, known
    groups = Groups(linked, tuple(keys), np.zeros(0, np.int64))
    kept = written_columns({name: cells[name] for name in linked}, linked, source)
    return evidence, replace(known, owner=groups.owners(kept, source), groups=groups)


def _stated(document: Mapping[str, Any]) -> ColumnSampler:
    """Figures as the certificate has them, where priors are not public: few digits, or none."""
    size = document["size"]
    nothing = ColumnEvidence(
        where=Symbols.of(str(place) for place in range(max(size, 2))),
        budget=LIP(0.0),
        priors=np.zeros((0, size)),
        of_group=np.zeros(0, np.int64),
    )
    return ColumnSampler(
        lip=LIP(float(document["lip"]), document["delta"]),
        ldp=LDP(float(document["ldp"]), document["guarantees"][1]["delta"]),
        loss=document["loss"],
        cost=document["cost"],
        silence=document["silence"],
        expected=None,
        rounding=document["rounding"],
        evidence=nothing,
        fingerprint=document["fingerprint"],
        draw=_undrawn,
    )


def _undrawn(*_: object) -> NoReturn:
    raise CorruptData("nothing is drawn where a certificate is checked")


def _said(due: bool) -> str:
    return "be said" if due else "not be said: asked.learnt_from says otherwise"


def remarks_due(stated: Sequence[str], made: Sequence[str], *, public: bool = True) -> list[str]:
    """What the remarks must be; words on how values were read stand in their middle."""
    if _MARK not in made:
        return list(made)
    mark = list(made).index(_MARK)
    first, last = list(made[:mark]) if public else [], list(made[mark + 1 :])
    between = list(stated)[len(first) : len(stated) - len(last)]
    return [*first, *between, *last]


def _drawn(
    found: Verification,
    document: Mapping[str, Any],
    evidence: ColumnEvidence | None,
    values: Sequence[Any],
    owner: Ints | None,
) -> Drawn:
    """What left, if every row is an answer that could: written in the one way that it has."""
    shares = np.zeros(1)
    if evidence is None:
        return Drawn(list(values), shares)
    labels = evidence.labels
    if (reporting := evidence.reporting) is not None:
        place = {str(label): number for number, label in enumerate(labels)}
        counts = np.zeros(len(labels), dtype=np.int64)
        for row, cell in enumerate(values, start=1):
            named = _named(cell, labels, single=isinstance(reporting, KaryResponse))
            if named is None:
                found.note("table", f"row {row} is no report of the mechanism")
                continue
            counts[[place[str(label)] for label in named]] += 1
        return reported(reporting, labels, list(values), counts)
    allowed = [{labels[out] for out in channel.outputs} for channel in evidence.channels]
    texts = [{str(label) for label in each} | each for each in allowed]
    of_row = [0] * len(values) if owner is None else evidence.of_group[owner].tolist()
    for row, (cell, own) in enumerate(zip(values, of_row, strict=True), start=1):
        if cell not in texts[own]:
            found.note("table", f"row {row} holds nothing that the channel can release")
    return Drawn(list(values), shares)


def _named(cell: Any, labels: Sequence[Any], *, single: bool) -> list[Any] | None:
    """The symbols that a report names; None if it is none."""
    known = {str(label): label for label in labels}
    if single:
        return [known[str(cell)]] if str(cell) in known else None
    try:
        read = msgspec.json.decode(str(cell), type=list[str | int])
    except msgspec.MsgspecError:
        return None
    if any(str(label) not in known for label in read) or len(set(map(str, read))) != len(read):
        return None
    # Symbols stand in the order of the alphabet: any other order would tell something.
    order = [label for label in labels if label in read]
    return order if msgspec.json.encode(order).decode() == str(cell) else None
