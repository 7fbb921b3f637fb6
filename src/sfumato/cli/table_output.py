"""What commands that release a table once have in common: their files, and names in messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli.console import hold

if TYPE_CHECKING:
    from sfumato.tables.readers import Table


def check_files(output: str, plot: str | None, inputs: list[str | None], *, keyed: bool) -> None:
    """What would fail after the draw is refused before it."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.readers import same_file

    if not Path(output).parent.is_dir() or any(Path(f).is_dir() for f in (output, beside(output))):
        raise InvalidParameter("--output", output, "name a file in a folder that exists")
    hold(output)  # from here on: what does not exist now will not be made by another run
    if output != "-" and not keyed and any(Path(f).exists() for f in (output, beside(output))):
        rule = "not exist: a second release tells more about everyone (or give --key-file)"
        raise InvalidParameter("--output", output, rule)
    for file in (output, plot, beside(output)):
        if file is None or file == "-":
            continue
        if any(given is not None and same_file(given, file) for given in inputs):
            raise InvalidParameter("--output", file, "be a file of its own")
    check_picture(plot)


def check_picture(plot: str | None) -> None:
    """A picture that could not be written is refused before anything is computed."""
    from sfumato.core.errors import InvalidParameter

    check_suffix(plot)
    if plot is not None and (Path(plot).is_dir() or not Path(plot).parent.is_dir()):
        raise InvalidParameter("--plot", plot, "name a file in a folder that exists")


def check_suffix(plot: str | None) -> None:
    """A picture of a format that is not drawn is refused."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.plots.figures import PICTURES

    if plot is not None and Path(plot).suffix.lower() not in PICTURES:
        raise InvalidParameter("--plot", plot, f"end in {', '.join(PICTURES)}")


@contextmanager
def named_options(files: Mapping[str, str], options: Mapping[str, str]) -> Iterator[None]:
    """Problems with the names of files and options instead of those of the Python call.

    Within a rule, names that no plain word can be, those with an underscore, are changed as well,
    and those that stand first in brackets.
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.problems import BadTable

    try:
        yield
    except BadTable as problem:
        source = files.get(problem.source, problem.source)
        raise BadTable(source, problem.row, _renamed(problem.rule, options)) from None
    except InvalidParameter as problem:
        name = options.get(problem.name, problem.name)
        raise InvalidParameter(name, problem.value, _renamed(problem.rule, options)) from None


def _renamed(rule: str, options: Mapping[str, str]) -> str:
    for argument, option in options.items():
        rule = rule.replace(argument, option) if "_" in argument else rule
        rule = re.sub(rf"\({re.escape(argument)}\b:?", f"({option}", rule)
    return rule


def beside(output: str) -> str:
    """Where the certificate of an output lies."""
    return f"{output}.certificate.json"


def write_released(
    sink: Table,
    frame: Any,
    document: dict[str, Any],
    pictures: Mapping[str, Callable[[str], None]],
    *,
    keyed: bool,
) -> None:
    """Pictures, certificate and table, together: if anything fails, nothing was released."""
    from sfumato.store.files import together
    from sfumato.tables.columns import write_columns

    if sink.is_standard:
        with written_together(pictures):
            write_columns(sink, frame)
        return
    if keyed and Path(sink.path).exists():
        _check_same(sink.path, document["fingerprint"])
    with together([*pictures, beside(sink.path), sink.path]) as asides:
        for aside, draw in zip(asides, pictures.values(), strict=False):
            draw(str(aside))
        *_, certificate, table = asides
        # The certificate holds the digest of the table, which is written before it.
        write_columns(replace(sink, path=str(table)), frame)
        _write_document(document, str(certificate), str(table))


@contextmanager
def written_together(files: Mapping[str, Callable[[str], None]]) -> Iterator[None]:
    """Files that take their places when all are written, and the block inside has ended.

    If anything fails, what was there before is there still; what a kill may leave, `together` says.

    Args:
        files: How each is written, by its path; the last one never stands without the others.

    Examples:
        >>> path = getfixture("tmp_path") / "note.txt"
        >>> with written_together({str(path): lambda aside: Path(aside).write_text("all")}):
        ...     path.exists()
        False
        >>> path.read_text()
        'all'
    """
    from sfumato.store.files import together

    if not files:
        yield
        return
    with together(list(files)) as asides:
        for aside, write in zip(asides, files.values(), strict=True):
            write(str(aside))
        yield


def _write_document(document: dict[str, Any], path: str, table: str) -> None:
    from sfumato.core.printed import finite
    from sfumato.store.attestation import canonical, sealed
    from sfumato.store.files import write_whole

    write_whole(path, canonical(sealed(finite(document), table)).encode())


def write_certificate(document: dict[str, Any], output: str) -> None:
    """The certificate of a table that is there already, beside it."""
    _write_document(document, beside(output), output)


def told(document: dict[str, Any]) -> dict[str, Any]:
    """A certificate without what it follows from: for a person, or a script that prints it."""
    own = ("format", "program", "job", "coins", "commitment", "asked", "evidence")
    return {name: value for name, value in document.items() if name not in own}


def _check_same(output: str, fingerprint: str) -> None:
    """An output may be written over by the mechanism that wrote it alone."""
    import json

    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.documents import read_text

    try:
        before = json.loads(read_text("--output", beside(output))).get("fingerprint")
    except (OSError, ValueError, AttributeError, RecursionError):
        before = None
    if before != fingerprint:
        rule = (
            "not exist, or come from the same mechanism with the same certificate: other answers "
            "tell more about everyone, and no promise is replaced by another"
        )
        raise InvalidParameter("--output", output, rule)


def split_names(text: str | None) -> list[str]:
    """Names from a,b,c."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def read_interval(text: str, option: str = "--range") -> tuple[float, float]:
    """Two numbers from LOW:HIGH."""
    from sfumato.core.errors import InvalidParameter

    try:
        low, high = (float(end) for end in text.split(":"))
    except ValueError:
        raise InvalidParameter(option, text, "be LOW:HIGH, two numbers") from None
    if not -float("inf") < low < high < float("inf"):
        raise InvalidParameter(
            option, text, "be finite numbers LOW:HIGH, the first less than the second"
        )
    return low, high
