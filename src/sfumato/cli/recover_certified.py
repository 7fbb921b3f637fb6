"""The part of `sfumato recover` that is for outputs of `realtime` and `privatize`.

Their certificates lie beside them, and say what noise or mechanism they went through.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sfumato.cli.console import print_json, say, table
from sfumato.cli.realtime_audit import certificate_beside, job_of
from sfumato.core.errors import CorruptData, InvalidParameter

if TYPE_CHECKING:
    from sfumato.cli.recover_command import RecoverOptions
    from sfumato.column.column_recovery import ColumnRecovery, Inferred
    from sfumato.models.encoding import Raw
    from sfumato.noise.frequency import Reporting
    from sfumato.series.series_smoother import SmoothedSeries
    from sfumato.tables.readers import Table

_SHARES = {"symbol": str, "share": float, "error": float}


def recover_certified(given: RecoverOptions) -> None:
    """Recover a series or a column from its output and the certificate beside it."""
    from sfumato.series.series_ledger import JOB

    files = given.released or []
    if len(files) != 1:
        raise InvalidParameter("RELEASED", len(files), "be one file, without --model")
    certificate = certificate_beside(files[0])
    if certificate is None:
        rule = "be the model that `sfumato fit` wrote, or RELEASED have its certificate beside it"
        raise InvalidParameter("--model", None, rule)
    if job_of(certificate) == JOB.name:
        _series(given, files[0], certificate)
    else:
        _column(given, files[0], certificate)


def _series(given: RecoverOptions, path: str, certificate: dict[str, Any]) -> None:
    """Every value of a completed series from all measurements."""
    import numpy as np

    from sfumato.series.realtime import Realtime
    from sfumato.series.series_audit import read_rules
    from sfumato.series.series_smoother import smooth_series
    from sfumato.tables.columns import read_columns
    from sfumato.tables.moments import values_of
    from sfumato.tables.readers import Table

    spec, method, _ = read_rules(certificate["rules"], f"{path}.certificate.json")
    if not isinstance(method, Realtime) or spec.interval is not None:
        rule = (
            "leave its measurements as they are: gaussian, laplace and the like, not clamped; what "
            "left of others is the best estimate already"
        )
        raise InvalidParameter("method", spec.method, rule)
    column, kept = str(certificate.get("column")), certificate.get("kept")
    beside = [str(name) for name in kept] if isinstance(kept, list) else []
    frame = read_columns(Table.at(path, separator=given.separator), [*beside, column])
    values = values_of(frame[column], range(len(frame[column])), path)
    _check_whole(len(values), certificate.get("values"), path)
    found = smooth_series(values, method)
    if given.output is not None:
        _write_series(given.output, {name: frame[name] for name in beside}, values, found)
    document = {
        "values": len(values),
        "noise": float(np.sqrt(method.variances[: len(values)].mean())),
        "error": float(np.sqrt((found.errors**2).mean())),
        "assumes": "deviations from a mean fade at some rate",
    }
    if given.shown.as_json:
        print_json(document)
        return
    if given.shown.quiet:
        return
    say(
        f"{len(values):,} values: standard error {document['error']:.4g} after recovery, where "
        f"measurements have {document['noise']:.4g}; if {document['assumes']}"
    )


def _check_whole(rows: int, certified: object, path: str) -> None:
    """Refuse a part of what was certified: rows that are missing were perhaps chosen."""
    if rows != certified:
        rule = f"have the {certified} rows that its certificate names"
        raise InvalidParameter("RELEASED", f"{path} with {rows}", rule)


def _write_series(
    output: str, kept: dict[str, list[Raw]], values: list[float | None], found: SmoothedSeries
) -> None:
    """The smoothed values behind the columns that left as they are: the times of rows, say."""
    from sfumato.tables.columns import write_columns
    from sfumato.tables.readers import Table

    low, high = found.interval()
    numbers = {"recovered": found.values, "error": found.errors, "low": low, "high": high}
    own = {"released": values} | {name: each.tolist() for name, each in numbers.items()}
    for name in own.keys() & kept.keys():
        rule = f"keep no column with a name of {', '.join(own)}"
        raise InvalidParameter("RELEASED", name, rule)
    write_columns(Table.at(output), kept | own)


def _column(given: RecoverOptions, path: str, certificate: dict[str, Any]) -> None:
    """What all rows of a column say together."""
    from sfumato.column.column_recovery import recover_column
    from sfumato.column.mechanism_registry import mechanism_named
    from sfumato.tables.columns import read_columns
    from sfumato.tables.readers import Table

    name, column = str(certificate.get("mechanism")), str(certificate.get("column"))
    source = Table.at(path, separator=given.separator)
    rule = mechanism_named(name).reports
    frequencies, level = certificate.get("frequencies"), certificate.get("ldp")
    if rule is None:
        labels, cells, found = _through_channels(certificate, source, name)
    elif not isinstance(frequencies, dict) or not isinstance(level, float | int):
        raise CorruptData(f"{path}: its certificate must hold estimated shares and their level")
    else:
        labels, reporting = list(frequencies), rule(len(frequencies), float(level))
        cells = read_columns(source, [column])[column]
        found = recover_column(_reports(cells, labels, reporting, path), reporting)
    _check_whole(len(cells), certificate.get("rows"), path)
    shares = dict(zip(labels, found.shares(), strict=True))
    more = {}
    if all(_is_number(label) for label in labels):
        numbers = [float(label) for label in labels]
        more = {"mean": found.mean(numbers), "variance": found.spread(numbers)}
    if given.output is not None:
        _write_shares(given.output, shares)
    if given.shown.as_json:
        told = {label: [one.value, one.error] for label, one in shares.items()}
        told_more = {label: [one.value, one.error] for label, one in more.items()}
        print_json({"rows": len(cells), "shares": told, **told_more, "assumes": found.assumes})
        return
    if given.output == "-":
        if not given.shown.quiet:
            for label, one in more.items():
                say(f"{label} {one.value:.4f} +- {2 * one.error:.4f}")
            say(f"right on average, assuming {found.assumes}")
        return
    table(
        f"{len(cells):,} rows; share of each symbol among the true values",
        ["symbol", "estimate", "+-"],
        [
            [label, f"{one.value:.4f}", f"{2 * one.error:.4f}"]
            for label, one in (shares | more).items()
        ],
    )
    if not given.shown.quiet:
        say("+-: twice the standard error; mean and variance are those of the true values")
        say(f"right on average, assuming {found.assumes}")


def _through_channels(
    certificate: dict[str, Any], table: Table, mechanism: str
) -> tuple[list[str], list[Any], ColumnRecovery]:
    """What the rows say that went through the channels that a certificate holds."""
    import numpy as np

    from sfumato.column.column_recovery import ColumnRecovery, recover_column
    from sfumato.column.column_verify import known_of, read_spec
    from sfumato.tables.columns import read_columns

    held = certificate.get("evidence")
    if not isinstance(held, dict) or not held.get("channels") or not held.get("priors"):
        said = "be one for counting, or come from public records: the certificate of others does "
        said += "not hold the channel (sf.column.recover_column takes it)"
        raise InvalidParameter("mechanism", mechanism, said)
    spec = read_spec(certificate)
    cells = read_columns(table, [*spec.pass_through.columns, spec.column])
    evidence, knowledge = known_of(certificate, spec, cells, table.path)
    assert evidence is not None  # it holds channels
    texts = {str(label): place for place, label in enumerate(evidence.labels)}
    places = np.array([texts.get(str(cell), -1) for cell in cells[spec.column]])
    owner = np.zeros(places.size, np.int64)
    if knowledge.owner is not None:
        owner = evidence.of_group[knowledge.owner]
    parts = [
        (rows := np.flatnonzero(owner == one), recover_column(places[rows], *both))
        for one, both in enumerate(zip(evidence.channels, evidence.priors, strict=True))
        if np.any(owner == one)
    ]
    weights = np.empty((places.size, len(texts)))
    for rows, found in parts:
        weights[rows] = found.weights
    # One group whose outputs do not tell all symbols apart leaves all to the priors.
    assumes = next((f.assumes for _, f in parts if f.assumes != parts[0][1].assumes), None)
    said = parts[0][1].assumes if assumes is None else f"{parts[0][1].assumes}, or {assumes}"
    return list(texts), list(cells[spec.column]), ColumnRecovery(weights, said)


def _write_shares(output: str, shares: dict[str, Inferred]) -> None:
    from sfumato.tables.readers import Table
    from sfumato.tables.writers import Output

    with Output(Table.at(output), _SHARES) as sink:
        sink.write((label, one.value, one.error) for label, one in shares.items())


def _reports(cells: list[Any], labels: list[str], reporting: Reporting, path: str) -> Any:
    """Which symbols each row names."""
    import numpy as np

    place = {label: number for number, label in enumerate(labels)}
    shown = np.zeros((len(cells), len(labels)), dtype=np.bool_)
    for row, cell in enumerate(cells):
        text = str(cell)
        try:
            named = json.loads(text) if text.startswith("[") else [text]
            shown[row, [place[str(label)] for label in named]] = True
        except (ValueError, KeyError, TypeError):
            raise CorruptData(f"{path}, row {row + 1}: a report must name symbols") from None
    return shown


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True
