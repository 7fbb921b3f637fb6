"""How much a file may ask for before it is refused: far more than any honest one needs.

A few bytes can ask for all the memory there is: a line without an end, a compressed file of zeros,
a matrix whose size is only declared. Everything read from outside is held against these.
"""

from __future__ import annotations

# Bytes of a line of text, and of all lines of one row of a CSV file.
LINE = 1 << 20
# Characters of one cell of a table, as in the csv module.
FIELD = 1 << 17
# Characters of a symbol and of the name of a stream.
LABEL = 1000
# Columns of a table.
COLUMNS = 10_000
# Cells of a table that is held in memory as a whole.
CELLS = 100_000_000
# Bytes of a document that is read as a whole: a matrix, a prior, the rules of a release.
DOCUMENT = 1 << 28
# Bytes that the cells of some successive rows of one column may take, when unpacked.
CHUNK = 1 << 27
# Steps of a sliding window: every stream keeps what each of them cost.
WINDOW = 100_000
# Bins, and cells of a grid, that a range is cut into.
SYMBOLS = 1_000_000
# Values of a batch.
BATCH = 1000
# Moments that a budget is laid out for in advance, and uses of a mechanism.
STEPS = 10_000_000
# Seconds of a period that a budget is for: a thousand years.
PERIOD = 31_557_600_000
