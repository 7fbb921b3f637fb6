"""Cells of whole columns as the text that a line of CSV or JSON has for them.

A text is what Python's csv writer, or msgspec, writes for one cell. What is the same for many rows
is spelled once: words are numbered, and equal numbers too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Ints
from sfumato.store.answer_columns import Coded as Coded
from sfumato.tables.arrow_arrays import cell_array, number_array, numbers_of, scalar, text_array
from sfumato.tables.batches import Column

if TYPE_CHECKING:
    import pyarrow as pa

Word: TypeAlias = str | int | float | None


Cells: TypeAlias = "Coded[Any] | Column | NDArray[Any] | Sequence[Word] | pa.Array"
"""A column: coded, an array of numbers (masked where there is none), an Arrow array or a list."""
_PLAIN_LEAST, _PLAIN_MOST = 1e-3, 1e6
"""Between these Arrow writes a float that is not whole as Python and msgspec do, says a test."""


def arrow_type(kind: type) -> pa.DataType:
    """How Arrow calls a kind of cells."""
    import pyarrow as pa

    return {bool: pa.bool_(), str: pa.string(), int: pa.int64(), float: pa.float64()}[kind]


def column_array(cells: Cells, kind: type) -> pa.Array:
    """A column as an array of the type that files have for its kind.

    Examples:
        >>> column_array(Coded(np.array([1, 0, -1]), ["a", "b"]), str).to_pylist()
        ['b', 'a', None]
    """
    import pyarrow as pa

    if isinstance(cells, Column):
        cells = cells.array
    if isinstance(cells, Coded):
        words = cell_array([*cells.words, None], arrow_type(kind))
        return words.take(number_array(_all_words(cells), pa.int64()))
    if isinstance(cells, np.ma.MaskedArray):
        return number_array(cells.data, arrow_type(kind), np.ma.getmaskarray(cells))
    if isinstance(cells, pa.DictionaryArray):
        cells = cells.dictionary_decode()
    if isinstance(cells, pa.Array):
        return cells.cast(arrow_type(kind))
    if isinstance(cells, np.ndarray):
        return number_array(cells, arrow_type(kind))
    return cell_array(cells, arrow_type(kind))


def column_length(cells: Cells) -> int:
    """How many rows a column has."""
    return len(cells.codes if isinstance(cells, Coded) else cells)


def column_cells(cells: Cells) -> list[Any]:
    """A column as Python values; None where there is no cell."""
    import pyarrow as pa

    if isinstance(cells, Coded | Column):
        return cells.cells()
    if isinstance(cells, pa.Array):
        return list(cells.to_pylist())
    return list(cells.tolist() if isinstance(cells, np.ndarray) else cells)


def _all_words(cells: Coded[Any]) -> Ints:
    """Codes of a list that ends with the word for no cell."""
    return np.where(cells.codes < 0, len(cells.words), cells.codes)


@dataclass(frozen=True, slots=True)
class Spelling:
    """How lines of text spell cells.

    Attributes:
        before: What stands before the cell of each column in its line, by the names of columns.
        end: What ends a line.
        word: The text of one cell.
        quotes: What stands around a text in which nothing is odd.
        odd: A regular expression: texts that hold such a character are spelled one by one.
    """

    before: Mapping[str, str]
    end: str
    word: Callable[[Word], str]
    quotes: str
    odd: str

    @classmethod
    def of_csv(cls, names: Sequence[str], mark: str) -> Spelling:
        """As the csv module writes them."""
        before = {name: mark if place else "" for place, name in enumerate(names)}
        return cls(before, "\n", partial(_csv_word, mark), "", f'["\r\n{mark}]')

    @classmethod
    def of_json(cls, names: Sequence[str]) -> Spelling:
        """As msgspec writes them: an object a line."""
        before = {n: f"{',' if i else '{'}{_json_word(n)}:" for i, n in enumerate(names)}
        return cls(before, "}\n", _json_word, '"', r'["\\\x00-\x1f\x7f]')

    def lines(self, columns: Mapping[str, Cells], kinds: Mapping[str, type]) -> memoryview:
        r"""The lines of whole columns, as bytes.

        Examples:
            >>> cells = {"stream": Coded(np.array([0, 0]), ["u1"]), "sip": np.array([0.5, 1.0])}
            >>> kinds = {"stream": str, "sip": float}
            >>> bytes(Spelling.of_csv(["stream", "sip"], ",").lines(cells, kinds))
            b'u1,0.5\nu1,1.0\n'
        """
        import pyarrow as pa
        import pyarrow.compute

        pieces: list[Any] = []
        for name, before in self.before.items():
            pieces += [_text(before), self._texts(columns[name], kinds[name])]
        joined = pa.compute.binary_join_element_wise(*pieces, _text(self.end), _text(""))
        # Texts of an array lie one behind the other, as lines do in a file.
        _, ends, texts = joined.buffers()
        return memoryview(texts or b"")[: int(np.frombuffer(ends, np.int64)[len(joined)])]

    def _texts(self, cells: Cells, kind: type) -> pa.Array:
        import pyarrow as pa

        if isinstance(cells, Coded):
            words = self._words(cell_array(cells.words, arrow_type(kind)))
            return words.take(number_array(_all_words(cells), pa.int64()))
        array = column_array(cells, kind)
        if kind is int and not array.null_count:
            return array.cast(pa.large_string())
        # The bits of a float tell it from all others, which it need not be equal to: -0.0, NaN.
        coded = (array.view(pa.int64()) if kind is float else array).dictionary_encode()
        words = coded.dictionary.view(pa.float64()) if kind is float else coded.dictionary
        missing = scalar(len(words), pa.int64()).cast(coded.indices.type)
        codes = coded.indices.fill_null(missing)
        return self._words(words).take(codes)

    def _words(self, words: pa.Array) -> pa.Array:
        """The texts of different cells, and behind them the one for no cell."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_string(words.type):
            odd = pc.match_substring_regex(words, self.odd)
            text = words.cast(pa.large_string())
            if self.quotes:
                quote = _text(self.quotes)
                text = pc.binary_join_element_wise(quote, text, quote, _text(""))
        elif pa.types.is_floating(words.type):
            size = np.abs(numbers_of(words.fill_null(scalar(np.nan, words.type))))
            plain = (size >= _PLAIN_LEAST) & (size < _PLAIN_MOST) & (size != np.floor(size))
            odd, text = number_array(~plain, pa.bool_()), words.cast(pa.large_string())
        else:
            everywhere = np.ones(len(words), dtype=np.bool_)
            odd, text = number_array(everywhere, pa.bool_()), pa.nulls(len(words))
        odd = odd.fill_null(scalar(True, pa.bool_()))
        spelled = [self.word(word) for word in words.filter(odd).to_pylist()]
        texts = pc.replace_with_mask(text.cast(pa.large_string()), odd, _text_array(spelled))
        return pa.concat_arrays([texts, _text_array([self.word(None)])])


def _text(text: str) -> pa.Scalar:
    import pyarrow as pa

    return scalar(text, pa.large_string())


def _text_array(texts: Sequence[str]) -> pa.Array:
    import pyarrow as pa

    return text_array(texts, pa.large_string())


def _csv_word(mark: str, word: Word) -> str:
    """A cell between others, as the csv module writes it."""
    line = io.StringIO(newline="")
    csv.writer(line, delimiter=mark).writerow((word, 0))
    return line.getvalue().removesuffix(f"{mark}0\r\n")


def _json_word(word: Word) -> str:
    return msgspec.json.encode(word).decode()
