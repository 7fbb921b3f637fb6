"""Products of vectors and matrices, and small systems, in a fixed order: no BLAS, no LAPACK.

A library of linear algebra picks block sizes and fused instructions by the processor, so its sums
differ in the last bits from machine to machine. These loops add in one order everywhere.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit

# Sums of a row go to eight lanes, so that a processor need not wait for one before the next.
_LANES = 8


@njit(cache=True)
def inner(first: Floats, second: Floats) -> float:
    """The scalar product: eight lanes, added up in pairs, then what is left."""
    size = first.size
    whole = size - size % _LANES
    a = b = c = d = e = f = g = h = 0.0
    for place in range(0, whole, _LANES):
        a += first[place] * second[place]
        b += first[place + 1] * second[place + 1]
        c += first[place + 2] * second[place + 2]
        d += first[place + 3] * second[place + 3]
        e += first[place + 4] * second[place + 4]
        f += first[place + 5] * second[place + 5]
        g += first[place + 6] * second[place + 6]
        h += first[place + 7] * second[place + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for place in range(whole, size):
        total += first[place] * second[place]
    return total


@njit(cache=True)
def product(left: Floats, right: Floats) -> Floats:
    """The product of two matrices; every entry is summed from the first term to the last."""
    rows, middle, columns = left.shape[0], left.shape[1], right.shape[1]
    found = np.zeros((rows, columns))
    whole = middle - middle % 4
    for row in range(rows):
        target = found[row]
        # Four terms at a time, added one after the other: a quarter of the memory traffic.
        for place in range(0, whole, 4):
            a, b = left[row, place], left[row, place + 1]
            c, d = left[row, place + 2], left[row, place + 3]
            one, two = right[place], right[place + 1]
            three, four = right[place + 2], right[place + 3]
            for column in range(columns):
                sum_ = target[column] + a * one[column]
                sum_ += b * two[column]
                sum_ += c * three[column]
                target[column] = sum_ + d * four[column]
        for place in range(whole, middle):
            share, line = left[row, place], right[place]
            for column in range(columns):
                target[column] += share * line[column]
    return found


@njit(cache=True)
def row_products(matrix: Floats, vector: Floats) -> Floats:
    """The scalar product of each row of a matrix with a vector."""
    found = np.empty(matrix.shape[0])
    for row in range(matrix.shape[0]):
        found[row] = inner(matrix[row], vector)
    return found


@njit(cache=True)
def column_products(vector: Floats, matrix: Floats) -> Floats:
    """A vector times a matrix: its rows, weighted and added from the first to the last."""
    found: Floats = product(vector.reshape(1, -1), matrix)[0]
    return found


@njit(cache=True)
def solved(matrix: Floats, right: Floats) -> Floats:
    """The solutions of a square system, a column for each right side; NaN if it is singular.

    Gauss's elimination; the largest entry of a column is the pivot, the first of equals.
    """
    size, sides = right.shape
    left, found = matrix.copy(), right.copy()
    for step in range(size):
        pivot = step
        for row in range(step + 1, size):
            if abs(left[row, step]) > abs(left[pivot, step]):
                pivot = row
        if not abs(left[pivot, step]) > 0.0:
            return np.full((size, sides), np.nan)
        if pivot != step:
            for column in range(size):
                left[step, column], left[pivot, column] = left[pivot, column], left[step, column]
            for side in range(sides):
                found[step, side], found[pivot, side] = found[pivot, side], found[step, side]
        for row in range(step + 1, size):
            factor = left[row, step] / left[step, step]
            if factor != 0.0:
                for column in range(step + 1, size):
                    left[row, column] -= factor * left[step, column]
                for side in range(sides):
                    found[row, side] -= factor * found[step, side]
    for step in range(size - 1, -1, -1):
        for side in range(sides):
            found[step, side] /= left[step, step]
        for row in range(step):
            for side in range(sides):
                found[row, side] -= left[row, step] * found[step, side]
    return found


@njit(cache=True)
def root(matrix: Floats) -> Floats:
    """The lower triangle whose square is a positive definite matrix (Cholesky), or NaN."""
    size = matrix.shape[0]
    found = np.zeros((size, size))
    for row in range(size):
        for column in range(row + 1):
            total = matrix[row, column]
            for place in range(column):
                total -= found[row, place] * found[column, place]
            if row == column:
                if not total > 0.0:
                    return np.full((size, size), np.nan)
                found[row, row] = math.sqrt(total)
            else:
                found[row, column] = total / found[column, column]
    return found


@njit(cache=True)
def least_squares(design: Floats, target: Floats) -> Floats:
    """The weights of columns, of full rank, whose sum is nearest to a target (Householder)."""
    rows, terms = design.shape
    left, right = design.copy(), target.copy()
    for step in range(terms):
        length = math.sqrt(inner(left[step:, step].copy(), left[step:, step].copy()))
        length = -length if left[step, step] > 0.0 else length
        mirror = left[step:, step].copy()
        mirror[0] -= length
        squared = inner(mirror, mirror)
        for column in range(step, terms + 1):
            line = right[step:] if column == terms else left[step:, column]
            along = 2.0 * inner(mirror, line.copy()) / squared if squared > 0.0 else 0.0
            for place in range(rows - step):
                line[place] -= along * mirror[place]
    found = np.zeros(terms)
    for step in range(terms - 1, -1, -1):
        rest = right[step]
        for column in range(step + 1, terms):
            rest -= left[step, column] * found[column]
        found[step] = rest / left[step, step]
    return found


@njit(cache=True)
def eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, ascending, and eigenvectors, one a column, of a symmetric matrix (Jacobi)."""
    size = matrix.shape[0]
    left, vectors = matrix.copy(), np.eye(size)
    for _ in range(60):
        off = 0.0
        for row in range(size):
            for column in range(row):
                off += left[row, column] * left[row, column]
        if off == 0.0:
            break
        for one in range(size - 1):
            for two in range(one + 1, size):
                if left[one, two] == 0.0:
                    continue
                ratio = (left[two, two] - left[one, one]) / (2.0 * left[one, two])
                tangent = 1.0 / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
                tangent = tangent if ratio >= 0.0 else -tangent
                cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                sine = tangent * cosine
                for place in range(size):
                    a, b = left[place, one], left[place, two]
                    left[place, one], left[place, two] = (
                        cosine * a - sine * b,
                        sine * a + cosine * b,
                    )
                for place in range(size):
                    a, b = left[one, place], left[two, place]
                    left[one, place], left[two, place] = (
                        cosine * a - sine * b,
                        sine * a + cosine * b,
                    )
                    a, b = vectors[place, one], vectors[place, two]
                    vectors[place, one], vectors[place, two] = (
                        cosine * a - sine * b,
                        sine * a + cosine * b,
                    )
                left[one, two] = left[two, one] = 0.0
    values = np.diag(left).copy()
    order = np.argsort(values, kind="mergesort")
    return values[order], vectors[:, order]
