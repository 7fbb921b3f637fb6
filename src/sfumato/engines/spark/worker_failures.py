"""What a worker may say when it fails: an engine writes it into logs that many can read."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.core.errors import SfumatoError


class WorkerFailure(SfumatoError):
    """A worker refused its rows, or has a defect; no value is quoted, and nothing has left."""


@contextmanager
def without_values() -> Iterator[None]:
    """Let nothing out of a worker but rules: other errors may quote what they stumbled over.

    Examples:
        >>> with without_values():
        ...     float("the weight of a person")
        Traceback (most recent call last):
        sfumato.engines.spark.worker_failures.WorkerFailure: internal error (ValueError) at ...
    """
    try:
        yield
    except SfumatoError as problem:
        # What caused it is left behind as well: it may be an error of a library.
        raise WorkerFailure(str(problem)) from None
    except Exception as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        told = f"internal error ({type(problem).__name__}) at {where}"
        raise WorkerFailure(f"{told}: a defect of the program, not of the data") from None


def refusal_in(told: str) -> str | None:
    """What a worker said, found in what an engine says of its failure; None if it said nothing.

    Examples:
        >>> refusal_in("Job aborted: ... worker_failures.WorkerFailure: the value must be a number")
        'the value must be a number'
    """
    mark = f"{WorkerFailure.__name__}: "
    _, found, rest = told.partition(mark)
    return rest.splitlines()[0].strip() if found else None
