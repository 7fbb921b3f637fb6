"""A prior from a file."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.models.encoding import Symbols, Unreadable, number, text
from sfumato.models.prior import Prior
from sfumato.store.files import load
from sfumato.tables.documents import read_rows
from sfumato.tables.problems import BadTable


def read_prior(path: str) -> Prior:
    """A prior from a file: what `sfumato.save` wrote, or a table `value,probability`."""
    if not os.path.isfile(path):
        rule = "be estimate, mixture, features:COLUMNS or a file"
        raise InvalidParameter("prior", path, rule)
    if Path(path).suffix.lower() != ".csv":
        model = load(path)
        if not isinstance(model, Prior):
            raise CorruptData(f"{path}: stored data must be a prior; got {type(model).__name__}")
        return model
    rows = _prior_rows(path)
    where = Symbols.of([row[0] for row in rows])
    by_label = {where.encode(label): mass for label, mass in rows}
    if len(by_label) != len(rows):
        raise BadTable(path, None, "each value must stand in one row only")
    masses = [by_label[label] for label in where.alphabet.labels]
    if all(is_number(label) for label in where.alphabet.labels):
        places = [float(label) for label in where.alphabet.labels]
        return Prior(masses, Alphabet(where.alphabet.labels, places))
    return Prior(masses, where.alphabet)


def is_number(label: str | int) -> bool:
    """Whether a label is a finite number."""
    try:
        number(label)
    except Unreadable:
        return False
    return True


def _prior_rows(path: str) -> list[tuple[str, float]]:
    rows = read_rows("prior", path)
    if not rows or [cell.strip() for cell in rows[0]] != ["value", "probability"]:
        raise BadTable(path, None, "the header must be value,probability")
    found = []
    for place, row in enumerate(rows[1:], start=1):
        try:
            label, mass = row
            found.append((text(label), number(mass)))
        except (Unreadable, ValueError):
            raise BadTable(path, place, "a row must hold a value and a probability") from None
    if not found:
        raise BadTable(path, None, "the table must not be empty")
    return found
