"""People of a table whose columns are published: who they are, and what is known of them.

What leaves beside the columns is knowledge, so everything is known group by group of the columns
that are kept; with none of them, all people are one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Raw
from sfumato.record.attributes import Attributes, Numbers, known_attributes, numbers_of
from sfumato.record.constants import FEWEST_RECORDS
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.record_spec import BEST, RecordSpec
from sfumato.tables.cells import Missing, missing_rows
from sfumato.tables.frames import columns_of, written_columns
from sfumato.tables.pass_through import FEWEST_ROWS, Groups, PassThrough
from sfumato.tables.problems import BadTable

FRAME, HISTORY = "frame", "history"


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """People who agree in all columns that are kept.

    Attributes:
        known: What an attacker knows of them.
        records: What that was learnt from.
        people: They themselves.
        places: Which of all people they are.
    """

    known: Attributes
    records: Numbers
    people: Numbers
    places: Ints

    @property
    def table(self) -> Floats:
        """What was learnt from, one record a row."""
        return np.stack(list(self.records.values()), axis=1)

    @property
    def size(self) -> int:
        """How many people."""
        return len(next(iter(self.people.values())))


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Everyone of a table.

    Attributes:
        beside: The columns that leave as they are.
        groups: The people by what these columns tell; those with no people are left out.
        columns: The published columns of all.
        others: The columns that are kept, and the one that names the rows.
        half: How near an attacker must come, on each column.
        rows: Which rows of the frame these are.
        dropped: How many rows were left out because a value was missing.
        learnt_from: `table`, `history`, or `nothing` where what is known was given.
        guessed_from_table: Whether these very people taught a blind guess, or the attacker who
            knows other records.
    """

    beside: PassThrough
    groups: tuple[Group, ...]
    columns: Numbers
    others: dict[str, list[Raw]]
    half: Floats
    rows: Ints
    dropped: int
    learnt_from: str
    guessed_from_table: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The published columns."""
        return tuple(self.columns)

    @property
    def coupling(self) -> str:
        """What the attacker knows, in words."""
        return self.groups[0].known.text

    @property
    def shares(self) -> Floats:
        """Which part of the people each group is."""
        sizes = np.array([group.size for group in self.groups], dtype=np.float64)
        return np.asarray(sizes / sizes.sum())

    @property
    def records(self) -> Numbers:
        """All that was learnt from."""
        every = [group.records for group in self.groups]
        return {name: np.concatenate([one[name] for one in every]) for name in self.names}

    @property
    def deviations(self) -> Floats:
        """How far the people are from the best constant: of their group, if groups are known."""
        squares = [
            share * np.array([column.var() for column in group.people.values()])
            for share, group in zip(self.shares, self.groups, strict=True)
        ]
        return np.asarray(np.sqrt(np.sum(squares, axis=0)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is said of any of the groups, once, and of the columns beside them."""
        every = dict.fromkeys(remark for group in self.groups for remark in group.known.remarks)
        learnt: tuple[str, ...] = ()
        if self.learnt_from == "table":
            learnt = (
                "the coupling was learnt from these very people: what is said holds for an "
                "attacker who knows it already; learn it from public records (history) to be safe",
            )
        return (*every, *self.beside.remarks, *learnt, *self._few)

    @property
    def _few(self) -> tuple[str, ...]:
        """An attacker who knows hardly any records is not tried, and that is said."""
        fewest = min(len(group.table) for group in self.groups)
        if self.groups[0].known.ignorant or fewest >= FEWEST_RECORDS:
            return ()
        where = " of a group" if len(self.groups) > 1 else ""
        return (
            f"fewer than {FEWEST_RECORDS} records{where}: too few to attack with; delta is that of "
            "the coupling alone, and who knows more such records may find more where values heap",
        )


def known_people(frame: Any, history: Any, spec: RecordSpec) -> People:
    """The people of a frame, with what is known of each group of them.

    Examples:
        >>> table = {"x": [1.0, None, 4.0], "y": [2.0, 5.0, 9.0]}
        >>> spec = RecordSpec(["x", "y"], accuracy=1.0, coupling="none", missing="drop")
        >>> found = known_people(table, None, spec)
        >>> found.columns["y"], found.dropped, len(found.groups)
        (array([2., 9.]), 1, 1)
    """
    beside = spec.beside
    rows, numbers, others, dropped = _present(frame, spec, spec.table_columns, FRAME)
    half = spec.half
    past, owner, learnt = numbers, None, Groups.of(others, beside.linked) if beside.linked else None
    if history is not None:  # groups are those of the history: people find theirs among them
        _, past, keys, _ = _present(history, spec, spec.history_columns, HISTORY)
        if beside.linked:
            learnt = Groups.of(keys, beside.linked)
            owner = learnt.owners(others, FRAME)
    if learnt is not None:
        learnt.check_sizes(FRAME if history is None else HISTORY)
        owner = learnt.owner if owner is None else owner
    given = isinstance(spec.coupling, JointMixture)
    if history is None and not given and spec.coupling != "none":
        _check_rows(len(rows))
    groups = _groups(numbers, past, owner, learnt, spec)
    source = "table" if history is None else "history"
    # The best noise is made against columns as they are where no density was given.
    fitted = spec.noise == BEST and groups[0].known.joint is None
    learnt_from = source if fitted or not (given or groups[0].known.ignorant) else "nothing"
    taught = history is None and not (given and len(rows) < FEWEST_RECORDS)
    return People(beside, groups, numbers, others, half, rows, dropped, learnt_from, taught)


def _check_rows(rows: int) -> None:
    """Refuse to learn what attackers know from hardly any private rows: it would be those rows."""
    if rows < FEWEST_ROWS:
        rule = (
            f"a coupling needs {FEWEST_ROWS} rows to be learnt from the columns that are "
            "published: fewer tell their own values; give public records (history)"
        )
        raise BadTable(FRAME, None, rule)


def _groups(
    people: Numbers, past: Numbers, owner: Ints | None, learnt: Groups | None, spec: RecordSpec
) -> tuple[Group, ...]:
    if learnt is None or owner is None:
        every = np.arange(len(next(iter(people.values()))))
        return (_group(past, people, every, spec),)
    present = [place for place in range(len(learnt.keys)) if np.any(owner == place)]
    try:
        return tuple(
            _group(
                {name: column[learnt.rows(place)] for name, column in past.items()},
                people,
                np.flatnonzero(owner == place),
                spec,
            )
            for place in present
        )
    except InvalidParameter as problem:
        rule = f"{problem.rule}, in every group of equal values of the columns that are kept"
        raise InvalidParameter(problem.name, problem.value, rule) from None


def _group(past: Numbers, people: Numbers, places: Ints, spec: RecordSpec) -> Group:
    own = {name: column[places] for name, column in people.items()}
    known = known_attributes(
        past, spec.coupling, domains=spec.domains, degree=spec.degree, people=own
    )
    return Group(known, past, own, places)


def _present(
    frame: Any, spec: RecordSpec, columns: Sequence[str], source: str
) -> tuple[Ints, Numbers, dict[str, list[Raw]], int]:
    """The rows that have a value in every column, as numbers, and their other columns."""
    cells = columns_of(frame, columns, source)
    leaving = cells | written_columns(frame, spec.beside.linked, source)
    count = len(next(iter(cells.values()))) if cells else 0
    rows = list(range(count))
    if spec.missing is Missing.DROP:
        gone = set(missing_rows(*(cells[name] for name in spec.columns)))
        rows = [row for row in rows if row not in gone]
    present = {name: [column[row] for row in rows] for name, column in cells.items()}
    try:
        numbers = numbers_of(present, spec.columns, source)
    except BadTable as problem:
        # The row is named as the user counts it, with those that were left out.
        row = None if problem.row is None else rows[problem.row - 1] + 1
        raise BadTable(source, row, problem.rule) from None
    others = {name: [leaving[name][row] for row in rows] for name in columns[len(spec.columns) :]}
    return np.array(rows, dtype=np.int64), numbers, others, count - len(rows)
