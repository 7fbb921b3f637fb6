"""Loops that follow a compiled release by what left: which column it was, and how likely."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import njit
from sfumato.solver.policy import LANES, WHOLE, Tables
from sfumato.solver.solving_tables import HEADER
from sfumato.stream.draw_loops import BITS
from sfumato.stream.solved_channel_loops import (
    are_solved,
    column_that_released,
    row_of_symbol,
    weight_of,
)


@njit(cache=True, nogil=True, error_model="numpy")
def find_columns(
    tables: Tables, chosen: Ints, blends: Ints, symbols: Ints, signals: Ints, columns: Ints
) -> None:
    """The column of each chosen channel that released a symbol; -1 if none does.

    A signal, where it is not negative, is the column itself.
    """
    nodes, outputs = tables[0], tables[5]
    for row in range(chosen.size):
        if are_solved(nodes):
            columns[row] = column_that_released(blends[row], symbols[row])
            continue
        first, width, columns[row] = nodes[chosen[row], 2], nodes[chosen[row], 4], -1
        for y in range(width):
            fits = signals[row] < 0 or signals[row] == y
            if fits and outputs[first + y] == symbols[row]:
                columns[row] = y
                break


@njit(cache=True, nogil=True, error_model="numpy")
def likelihoods(
    tables: Tables,
    chosen: Ints,
    parts: Ints,
    blends: Ints,
    columns: Ints,
    at: Ints,
    told: Floats,
    tells: Bools,
) -> None:
    """How likely each symbol made what left, and whether that tells anything.

    Args:
        tables: Kept channels.
        chosen: The channel of each row.
        parts: Its mixing weight.
        blends: The integers it is mixed with.
        columns: The column that left.
        at: Where the result of each row goes.
        told: The likelihoods, one row per value.
        tells: Whether the channel was not a constant, one per value.
    """
    nodes, row_of, weights = tables[0], tables[2], tables[4]
    for row in range(chosen.size):
        c, mixed, y = chosen[row], parts[row], columns[row]
        if are_solved(nodes):
            tells[at[row]] = mixed < WHOLE
            for x in range(row_of.shape[1] if mixed < WHOLE else 0):
                own = weight_of(nodes, blends[row], row_of_symbol(nodes, blends[row], x), y)
                told[at[row], x] = np.float64(own) * 2.0**-BITS
            continue
        rows = nodes[c, 1]
        tells[at[row]] = rows > 1 and mixed < WHOLE
        if not tells[at[row]]:
            continue
        first = nodes[c, 0] + (y // LANES) * rows
        base = mixed * blends[row, y] if mixed > 0 else np.int64(0)
        for x in range(row_of.shape[1]):
            weight = np.int64(weights[first + row_of[c, x], y % LANES])
            told[at[row], x] = np.float64((WHOLE - mixed) * weight + base) * 2.0**-BITS


@njit(cache=True, nogil=True, error_model="numpy")
def fair_rows(
    tables: Tables,
    chosen: Ints,
    parts: Ints,
    blends: Ints,
    places: Ints,
    fair: Floats,
    symbols: Ints,
    widths: Ints,
) -> None:
    """The rows of true symbols in kept channels, and what their outputs say.

    Args:
        tables: Kept channels.
        chosen: The channel of each row; rows below 0 are passed over.
        parts: Its mixing weight.
        blends: The integers it is mixed with.
        places: The true symbols; rows below 0 are passed over.
        fair: Gets the probability of each output.
        symbols: Gets what it says.
        widths: Gets how many outputs there are.
    """
    nodes, row_of, weights, outputs = tables[0], tables[2], tables[4], tables[5]
    for row in range(chosen.size):
        c, mixed = chosen[row], parts[row]
        if c < 0 or places[row] < 0:
            continue
        if are_solved(nodes):
            widths[row], at = blends[row, 0], row_of_symbol(nodes, blends[row], places[row])
            for y in range(widths[row]):
                fair[row, y] = np.float64(weight_of(nodes, blends[row], at, y)) * 2.0**-BITS
                symbols[row, y] = blends[row, HEADER + y]
            continue
        rows, widths[row] = nodes[c, 1], nodes[c, 4]
        first = nodes[c, 0] + row_of[c, places[row]]
        for y in range(widths[row]):
            whole = (WHOLE - mixed) * np.int64(weights[first + (y // LANES) * rows, y % LANES])
            if mixed > 0:
                whole += mixed * blends[row, y]
            fair[row, y] = np.float64(whole) * 2.0**-BITS
            symbols[row, y] = outputs[nodes[c, 2] + y]
