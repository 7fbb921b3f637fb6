"""How much a file may ask for before it is refused: far more than any honest one needs.

A few bytes can ask for all the memory there is: a line without an end, a compressed file of zeros,
a matrix whose size is only declared. Everything read from outside is held against these.
"""

from __future__ import annotations

LINE = 1 << 20
"""Bytes of a line of text, and of all lines of one row of a CSV file."""

FIELD = 1 << 17
"""Characters of one cell of a table, as in the csv module."""

LABEL = 1000
"""Characters of a symbol and of the name of a stream."""

COLUMNS = 10_000
"""Columns of a table."""

CELLS = 100_000_000
"""Cells of a table that is held in memory as a whole."""

DOCUMENT = 1 << 28
"""Bytes of a document that is read as a whole: a matrix, a prior, the rules of a release."""

CHUNK = 1 << 27
"""Bytes that the cells of some successive rows of one column may take, when unpacked."""

WINDOW = 100_000
"""Steps of a sliding window: every stream keeps what each of them cost."""

SYMBOLS = 1_000_000
"""Bins, and cells of a grid, that a range is cut into."""

BATCH = 1000
"""Values of a batch."""

STEPS = 10_000_000
"""Moments that a budget is laid out for in advance, and uses of a mechanism."""
