"""Temporal leakage of tables and files: matrices in, leakages and budgets out."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sfumato.core import checks, limits
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.encoding import Symbols, text
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load, together, write_whole
from sfumato.tables.cells import read_each, stream_name
from sfumato.tables.columns import read_columns
from sfumato.tables.named_loss import read_matrix
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from sfumato.temporal.backward import transition_counts
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_spec import OwnMatrices, Rows


def read_loss(option: str, path: str | None, *, backward: bool) -> LossFunction:
    """The loss function of a matrix in a file.

    Args:
        option: What messages call it.
        path: A CSV file of numbers without a header, or a model that `sfumato fit` wrote; nothing
            is known of the correlation if not given.
        backward: Whether a model is to be told backwards, as a stationary process.
    """
    if path is None:
        return LossFunction.unknown()
    return LossFunction.of(read_transition(option, path, backward=backward))


def read_transition(option: str, path: str, *, backward: bool) -> Floats:
    """The matrix itself."""
    if not Path(path).is_file():
        raise InvalidParameter(option, path, "name a file")
    if Path(path).suffix.lower() == ".csv":
        matrix = np.array(read_matrix(path))
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InvalidParameter(option, matrix.shape, "hold a square matrix")
        return checks.row_stochastic(option, matrix)
    chain = read_chain(option, path)
    if chain.order != 1:
        raise InvalidParameter(option, path, "hold a matrix, or a chain of order 1")
    return chain.reversed().transition() if backward else chain.transition()


def matrices_of(option: str, paths: Sequence[str], *, backward: bool) -> list[Rows]:
    """Matrices of several files, of which any may hold."""
    return [read_transition(option, path, backward=backward).tolist() for path in paths]


def symbols_of(given: str | None, models: Sequence[str]) -> tuple[str, ...]:
    """The symbols of a response: as given, or those of the models that matrices were read from.

    Never from the values themselves: which of them occur would leave.
    """
    if given is not None:
        return tuple(given.split(","))
    chains = [read_chain("model", path) for path in models if not path.lower().endswith(".csv")]
    found = {tuple(str(label) for label in chain.alphabet.labels) for chain in chains}
    if len(found) != 1:
        rule = "be given: a matrix does not tell them, and the values must not"
        raise InvalidParameter("--values", None, rule)
    return found.pop()


def read_own(path: str) -> dict[str, OwnMatrices]:
    """Matrices of single streams: a table with the columns stream, backward and forward.

    The cells of the last two are file names, from the folder of the table on; one of them may be
    empty: nothing is known of that direction.
    """
    table = Table.at(path)
    columns = read_columns(table, ["stream", "backward", "forward"])
    folder, known = Path(path).parent, dict[tuple[str, bool], Rows]()

    def matrix(cell: object, *, backward: bool) -> Rows | None:
        name = "" if cell is None else str(cell)
        if not name:
            return None
        # A town has few matrices and many streams: each file is read once.
        if (name, backward) not in known:
            found = read_transition("--own", str(folder / name), backward=backward)
            known[name, backward] = found.tolist()
        return known[name, backward]

    own: dict[str, OwnMatrices] = {}
    rows = zip(columns["stream"], columns["backward"], columns["forward"], strict=True)
    for row, (owner, back, forth) in enumerate(rows, start=1):
        name = stream_name(owner, "stream", path, row)
        if name in own:
            raise BadTable(path, row, "a stream must have one row of matrices")
        own[name] = OwnMatrices(matrix(back, backward=True), matrix(forth, backward=False))
    return own


def read_chain(option: str, path: str) -> MarkovChain:
    """The chain of a model that `sfumato fit` wrote, of any order."""
    if not Path(path).is_file():
        raise InvalidParameter(option, path, "name a file")
    model = load(path)
    chain = model.single_values if isinstance(model, StreamModel) else model
    if not isinstance(chain, MarkovChain):
        raise InvalidParameter(option, path, "hold a chain")
    return chain


def read_epsilons(given: str, steps: int | None) -> Floats:
    """Budgets from a number and a count, or from a file of numbers."""
    if Path(given).is_file():
        rows = read_matrix(given)
        found = np.array([cell for row in rows for cell in row])
        if steps is not None and steps != found.size:
            raise InvalidParameter("--steps", steps, f"be {found.size}, as many as the file has")
        return found
    try:
        epsilon = float(given)
    except ValueError:
        raise InvalidParameter("--epsilon", given, "be a number, or a file of numbers") from None
    if steps is None:
        raise InvalidParameter("--steps", None, "be given with a constant epsilon")
    return np.full(
        checks.count("--steps", steps, at_most=limits.STEPS), checks.leakage("--epsilon", epsilon)
    )


def fit_matrices(
    table: Table,
    *,
    stream: str,
    value: str,
    smoothing: float,
    progress: Progress | None = None,
) -> tuple[Alphabet, Floats, Floats]:
    """Alphabet, backward and forward matrix of the streams of a table, in the order of its rows."""
    columns = read_columns(table, [stream, value], progress)
    alphabet = Symbols.of(read_each(columns[value], text, table.path)).alphabet
    labels = read_each(columns[value], Symbols(alphabet).encode, table.path)
    paths: dict[str, list[int]] = {}
    for row, (owner, label) in enumerate(zip(columns[stream], labels, strict=True), start=1):
        name = stream_name(owner, stream, table.path, row)
        paths.setdefault(name, []).append(alphabet.index(label))
    matrices = transition_counts(list(paths.values()), len(alphabet), smoothing=smoothing)
    return (alphabet, *matrices)


def write_matrices(matrices: Mapping[Path, Floats]) -> None:
    """Matrices as CSV files without a header, to the last digit; all of them or none."""
    for path in matrices:
        if path.is_dir() or not path.parent.is_dir():
            raise InvalidParameter("--output", str(path), "name a file in a folder that exists")
    with together(list(matrices)) as asides:
        for aside, matrix in zip(asides, matrices.values(), strict=True):
            sink = io.StringIO(newline="")
            rows = [[repr(float(cell)) for cell in row] for row in matrix]
            csv.writer(sink, lineterminator="\n").writerows(rows)
            write_whole(aside, sink.getvalue().encode())
