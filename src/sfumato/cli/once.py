"""What commands that release a table once have in common: their files, and names in messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.formats.readers import Table


def check_files(output: str, plot: str | None, inputs: list[str | None], *, keyed: bool) -> None:
    """What would fail after the draw is refused before it."""
    from sfumato.errors import InvalidParameter
    from sfumato.jobs.release import same_file

    if output != "-" and not keyed and Path(output).exists():
        rule = "not exist: a second release tells more about everyone (or give --key-file)"
        raise InvalidParameter("--output", output, rule)
    for file in (output, plot, beside(output)):
        if file is None or file == "-":
            continue
        if any(given is not None and same_file(given, file) for given in inputs):
            raise InvalidParameter("--output", file, "be a file of its own")
    check_picture(plot)
    if Path(beside(output)).is_dir() or not Path(output).parent.is_dir():
        raise InvalidParameter("--output", output, "name a file in a folder that exists")


def check_picture(plot: str | None) -> None:
    """A picture that could not be written is refused before anything is computed."""
    from sfumato.errors import InvalidParameter
    from sfumato.studies.figures import PICTURES

    if plot is None:
        return
    if Path(plot).suffix.lower() not in PICTURES:
        raise InvalidParameter("--plot", plot, f"end in {', '.join(PICTURES)}")
    if Path(plot).is_dir() or not Path(plot).parent.is_dir():
        raise InvalidParameter("--plot", plot, "name a file in a folder that exists")


@contextmanager
def named_options(files: Mapping[str, str], options: Mapping[str, str]) -> Iterator[None]:
    """Problems with the names of files and options instead of those of the Python call."""
    from sfumato.errors import InvalidParameter
    from sfumato.formats.problems import BadTable

    try:
        yield
    except BadTable as problem:
        source = files.get(problem.source, problem.source)
        raise BadTable(source, problem.row, problem.rule) from None
    except InvalidParameter as problem:
        name = options.get(problem.name, problem.name)
        raise InvalidParameter(name, problem.value, problem.rule) from None


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
    """Pictures and certificate first, the table last: if anything fails, nothing was released."""
    import json

    from sfumato.cli.console import finite
    from sfumato.files import write_whole
    from sfumato.jobs.columns import write_columns

    if keyed and not sink.is_standard and Path(sink.path).exists():
        _check_same(sink.path, document["fingerprint"])
    written: list[Path] = []
    try:
        for path, draw in pictures.items():
            draw(path)
            written.append(Path(path))
        if not sink.is_standard:
            text = json.dumps(finite(document), indent=2, ensure_ascii=False)
            write_whole(beside(sink.path), f"{text}\n".encode())
            written.append(Path(beside(sink.path)))
        write_columns(sink, frame)
    except BaseException:
        for file in written:
            file.unlink(missing_ok=True)
        raise


def _check_same(output: str, fingerprint: str) -> None:
    """An output may be written over by the mechanism that wrote it alone."""
    import json

    from sfumato.errors import InvalidParameter

    try:
        before = json.loads(Path(beside(output)).read_text(encoding="utf-8")).get("fingerprint")
    except (OSError, ValueError, AttributeError):
        before = None
    if before != fingerprint:
        rule = "not exist, or come from the same mechanism: other answers tell more about everyone"
        raise InvalidParameter("--output", output, rule)


def split_names(text: str | None) -> list[str]:
    """Names from a,b,c."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def read_interval(text: str, option: str = "--range") -> tuple[float, float]:
    """Two numbers from LOW:HIGH."""
    from sfumato.errors import InvalidParameter

    try:
        low, high = (float(end) for end in text.split(":"))
    except ValueError:
        raise InvalidParameter(option, text, "be LOW:HIGH, two numbers") from None
    if not -float("inf") < low < high < float("inf"):
        raise InvalidParameter(
            option, text, "be finite numbers LOW:HIGH, the first less than the second"
        )
    return low, high
