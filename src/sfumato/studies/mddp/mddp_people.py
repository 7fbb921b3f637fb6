"""Whom the figure of tied columns is about: the table of the paper, or a simulated twin.

References:
    [MDDP, Fig. 2]
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from sfumato.core import limits
from sfumato.core.arrays import Floats
from sfumato.core.randomness import Address, Domain, seeded
from sfumato.record.coupling.coupling import FullCoupling
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.vector_noise import Kind, standard, uniforms
from sfumato.tables.documents import read_document
from sfumato.tables.problems import BadTable

PRINTED = (261.88, -7.35, 0.083)
PRINTED_CORRELATION = 0.612
MEN = 10_000

PLAUSIBLE = {"height": (140.0, 210.0), "weight": (40.0, 180.0), "ap_hi": (80.0, 220.0)}
_COLUMNS = ("age", "gender", *PLAUSIBLE)
_YEAR, _MAN = 365.25, 2
_LEAST = 30
_ZIPPED = b"\x1f\x8b"

_HEIGHTS, _OFF = (67.5, 2.6), 20.0
_BODIES = ((74.0, 14.0), (127.0, 17.0))


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Whom the figure is about.

    Attributes:
        source: Where they come from.
        rows: How many there were.
        dropped: How many of them were left out as implausible.
        units: Of heights and weights of the men.
        men: Heights and weights of men aged 30 to 39, one a row.
        bodies: Weights in kg and systolic pressures in mmHg of everybody, one a row.
    """

    source: str
    rows: int
    dropped: int
    units: tuple[str, str]
    men: Floats
    bodies: Floats

    @property
    def coupling(self) -> FullCoupling:
        """Weight as a polynomial of height, of degree 2; domains are what there is."""
        height, weight = self.men.T
        return FullCoupling.fit({"height": height, "weight": weight}, "weight", ["height"])

    @property
    def joint(self) -> JointMixture:
        """Weight and pressure, jointly normal."""
        return JointMixture.fit_normal(self.bodies)


def printed_weight(height: float) -> float:
    """What the equation that the paper prints gives.

    Examples:
        >>> printed_weight(170.0)  # no kilograms for as many centimetres
        1411.08
        >>> printed_weight(170.0 / 2.54)  # pounds for as many inches
        141.75
    """
    return sum(weight * height**power for power, weight in enumerate(PRINTED))


def simulated_people(seed: int = 1, count: int = MEN) -> People:
    """Men around the printed equation, in inches and pounds, and bodies of the printed correlation.

    Args:
        seed: Another one gives other people.
        count: How many men, and how many bodies.

    Examples:
        >>> people = simulated_people(count=2_000)
        >>> people.men[:2].round(1), float(people.joint.correlation[0, 1].round(1))
        (array([[...]]), 0.6)
    """
    words = (
        seeded(seed)
        .at(Address(Domain.SIMULATION, "mddp", "people", 0))
        .words(4 * count)
        .reshape(4, count)
    )
    normals = standard(Kind.GAUSSIAN, uniforms(words))
    height = _HEIGHTS[0] + _HEIGHTS[1] * normals[0]
    weight = np.polynomial.polynomial.polyval(height, PRINTED) + _OFF * normals[1]
    rest = math.sqrt(1 - PRINTED_CORRELATION**2)
    pressed = PRINTED_CORRELATION * normals[2] + rest * normals[3]
    bodies = [
        centre + spread * column
        for (centre, spread), column in zip(_BODIES, (normals[2], pressed), strict=True)
    ]
    men = np.stack([height, weight], axis=1)
    return People("made-up people", count, 0, ("in", "lb"), men, np.stack(bodies, axis=1))


def read_people(path: str | Path) -> People:
    """The people of the table of cardiovascular disease, without what is implausible.

    Args:
        path: Columns separated by `;`, as it comes from Kaggle; may be gzipped.

    Raises:
        BadTable: It is no such table, or has too few men of the age.
    """
    source = str(path)
    table = _table(source)
    age, gender, height, weight, pressure = table.T
    kept = np.ones(len(table), dtype=np.bool_)
    for column, (low, high) in zip((height, weight, pressure), PLAUSIBLE.values(), strict=True):
        kept &= (column >= low) & (column <= high)
    chosen = kept & (gender == _MAN) & (age >= 30 * _YEAR) & (age < 40 * _YEAR)
    if np.count_nonzero(chosen) < _LEAST:
        rule = f"must hold at least {_LEAST} men (gender 2) aged 30 to 39 (age in days)"
        raise BadTable(source, None, f"{rule}, of plausible height, weight and pressure")
    return People(
        Path(path).name,
        len(table),
        int(np.count_nonzero(~kept)),
        ("cm", "kg"),
        np.stack([height, weight], axis=1)[chosen],
        np.stack([weight, pressure], axis=1)[kept],
    )


def _table(source: str) -> Floats:
    """The columns that are read, of all rows."""
    content = read_document("--data", source)
    try:
        whole = _unzipped(source, content) if content.startswith(_ZIPPED) else content
        lines = csv.DictReader(io.StringIO(whole.decode("utf-8-sig"), newline=""), delimiter=";")
        missing = [name for name in _COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            rule = f"must have the columns {', '.join(_COLUMNS)}, separated by ';'"
            raise BadTable(source, None, f"{rule}; there is no {', '.join(missing)}")
        rows = [
            [_number(source, row, name, line[name]) for name in _COLUMNS]
            for row, line in enumerate(lines, start=1)
        ]
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise BadTable(source, None, "must be a whole gzip file") from None
    except (UnicodeDecodeError, csv.Error):
        raise BadTable(source, None, "must be text in UTF-8, columns separated by ';'") from None
    return np.array(rows, dtype=np.float64).reshape(-1, len(_COLUMNS))


def _unzipped(source: str, content: bytes) -> bytes:
    with gzip.open(io.BytesIO(content)) as file:
        whole = b"".join(islice(iter(partial(file.read, 1 << 20), b""), limits.DOCUMENT >> 20))
        if file.read(1):
            raise BadTable(source, None, f"must unpack to at most {limits.DOCUMENT:,} bytes")
    return whole


def _number(source: str, row: int, name: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadTable(source, row, f"column {name!r} must be a number")
    return value
