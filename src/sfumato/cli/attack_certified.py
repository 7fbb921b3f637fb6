"""The part of `sfumato attack` that is for outputs of `realtime` and `publish`.

Their certificates lie beside them, and say what noise was added: the attacker needs no model.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, say, table
from sfumato.cli.realtime_audit import certificate_beside
from sfumato.core.errors import InvalidParameter
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.attacks.series_attack import SeriesAttack
    from sfumato.cli.attack_command import AttackOptions

_MODEL = (
    "be the model that `sfumato fit` wrote, for a release of streams; outputs of realtime and "
    "publish need none, but their certificate beside them"
)


def attack_certified(given: AttackOptions) -> None:
    """Attack a series or published columns, by the certificate beside them."""
    if len(given.released) != 1:
        raise InvalidParameter("RELEASED", len(given.released), "be one file, without --model")
    certificate = certificate_beside(given.released[0])
    job = None if certificate is None else certificate.get("job")
    attacks = {"realtime": _series, "publish": _columns}
    if certificate is None or job not in attacks:
        raise InvalidParameter("--model", None, _MODEL)
    _check(given)
    attacks[str(job)](given, certificate)


def _check(given: AttackOptions) -> None:
    """Refuse what is about streams."""
    asked = {
        "--rules": given.rules,
        "--policy": given.policy,
        "--stream": given.stream,
        "--lag": given.lag,
        "--loss": given.loss,
        "--network": given.network,
        "--order": None if given.order == 1 else given.order,
        "--top": None if given.top == 3 else given.top,
    }
    for name, value in asked.items():
        if value is not None:
            raise InvalidParameter(name, value, "come with --model: it is about streams")
    if given.against is not None and len(given.against) != 1:
        raise InvalidParameter("--against", len(given.against), "be one table, without --model")


def _read(given: AttackOptions, path: str, columns: list[str]) -> dict[str, list[Any]]:
    from sfumato.tables.columns import read_columns
    from sfumato.tables.readers import Table

    return read_columns(Table.at(path, separator=given.separator), columns)


def _numbers(given: AttackOptions, path: str, column: str) -> list[float | None]:
    from sfumato.tables.moments import values_of

    cells = _read(given, path, [column])[column]
    return values_of(cells, range(len(cells)), path)


def _series(given: AttackOptions, certificate: dict[str, Any]) -> None:
    """Every value of a series, from its measurements."""
    import numpy as np

    from sfumato.attacks.certified_series import attack_series

    path, column = given.released[0], str(certificate.get("column"))
    values = _numbers(given, path, column)
    known = None
    if given.known is not None:
        known = [one for one in _numbers(given, given.known, column) if one is not None]
    found = attack_series(values, certificate["rules"], f"{path}.certificate.json", known=known)
    scores = None
    if given.against is not None:
        true = _numbers(given, given.against[0], column)
        if len(true) != len(values) or None in true:
            rule = f"have the {len(values)} values of RELEASED"
            raise InvalidParameter("--against", given.against[0], rule)
        truth = np.array(true, dtype=np.float64)
        scores = asdict(found.best.scored(truth)) | {"left": found.left_error(truth)}
    if given.output is not None:
        _write_series(given.output, found.best)
    if given.plot is not None:
        from sfumato.plots.attack_figures import attacked_series

        attacked_series(values, found.best.values, found.best.errors, column, given.plot)
    document = {
        "job": "realtime",
        "rows": len(values),
        "by": found.by,
        "noise": found.noise,
        "expected_error": found.best.expected_error,
        "measured": scores,
    }
    if given.shown.as_json:
        print_json(document)
        return
    lines = [["noise of a measurement", f"{found.noise:.4g}", ""]]
    lines.append(["best guess", f"{found.best.expected_error:.4g}", _shown(scores, "error")])
    if scores is not None:
        lines.append(["what left, as it is", "", _shown(scores, "left")])
        lines.append(["the best constant", "", _shown(scores, "blind")])
    title = f"how far off the adversary is (root mean square), {found.by}"
    table(title, ["guess", "expected", "measured"], lines)
    _tell_files(given, f"{len(values):,} values were attacked")


def _shown(scores: dict[str, float] | None, name: str) -> str:
    return "" if scores is None else f"{scores[name]:.4g}"


def _write_series(output: str, found: SeriesAttack) -> None:
    from sfumato.tables.columns import write_columns
    from sfumato.tables.readers import Table

    numbers = {"guess": found.values.tolist(), "error": found.errors.tolist()}
    write_columns(Table.at(output), numbers)


def _columns(given: AttackOptions, certificate: dict[str, Any]) -> None:
    """All columns of published people, from other such records."""
    import numpy as np

    from sfumato.attacks.table_attack import attack_table, hold_same_people, kept_values
    from sfumato.record.record_attest import noise_of_certificate
    from sfumato.record.record_verify import read_spec
    from sfumato.tables.columns import write_columns
    from sfumato.tables.readers import Table

    if given.known is None:
        rule = "be a table of other such records: without them what was published is the guess"
        raise InvalidParameter("--known", None, rule)
    if given.plot is not None:
        raise InvalidParameter("--plot", given.plot, "not come with published columns")
    spec = read_spec(certificate)
    noise = noise_of_certificate(spec, certificate["sigma"], certificate["evidence"])
    if noise is None:
        raise InvalidParameter("noise", "best", "be one that the certificate holds")
    columns, kept = list(spec.columns), [str(name) for name in certificate["kept"]]
    left, other = (
        _read(given, path, [*columns, *kept]) for path in (given.released[0], given.known)
    )
    groups = (kept_values(left, kept), kept_values(other, kept)) if kept else None
    rows, known = _rows(left, columns), _rows(other, columns)
    true = None
    if given.against is not None:
        true = _rows(_read(given, given.against[0], columns), columns)
        if hold_same_people(known, true):
            rule = "be records of others: the people of --against are among them"
            raise InvalidParameter("--known", given.known, rule)
    found = attack_table(rows, known, noise, spec.accuracy, groups=groups)
    delta = float(certificate["delta"])
    scores = None if true is None else found.scored(true)
    if given.output is not None:
        own = {name: found.guesses[:, place].tolist() for place, name in enumerate(columns)}
        write_columns(Table.at(given.output), own | {"chance": found.chances.tolist()})
    refuted = scores is not None and scores.refutes(delta)
    if given.shown.as_json:
        document = {"job": "publish", "rows": len(found.guesses), "expected": found.expected}
        told = None if scores is None else asdict(scores)
        print_json(document | {"certified": delta, "measured": told, "refuted": refuted})
    else:
        lines = [
            [
                "best guess",
                f"{found.expected:.4g}",
                ""
                if scores is None
                else f"{scores.share:.4g} ({scores.low:.3g} to {scores.high:.3g})",
            ]
        ]
        if scores is not None:
            lines.append(["what was published", "", f"{scores.published:.4g}"])
            lines.append(["one guess for all, without it", "", f"{scores.blind:.4g}"])
        title = f"all of {', '.join(columns)} pinned down; certified {shown_up(delta, 4)} at most"
        table(title, ["guess", "expected", "measured"], lines)
        if refuted:
            print_line("REFUTED: more people are pinned down than the certificate allows")
        _tell_files(given, f"{len(np.asarray(found.guesses)):,} people were attacked")
    if refuted:
        raise typer.Exit(FAILED_AUDIT)


def _rows(frame: dict[str, list[Any]], columns: list[str]) -> Any:
    """Columns of numbers, one person a row."""
    import numpy as np

    try:
        cells = [[float(cell) for cell in frame[name]] for name in columns]
    except (TypeError, ValueError):
        raise InvalidParameter("--columns", columns, "be numbers in every row") from None
    return np.array(cells).T


def _tell_files(given: AttackOptions, first: str) -> None:
    if given.shown.quiet:
        return
    say(first)
    for file in (given.output, given.plot):
        if file not in (None, "-"):
            say(f"{file}: written")
