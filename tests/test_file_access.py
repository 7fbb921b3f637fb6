"""Files, clocks and the environment are touched by some rooms alone; exceptions have names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "sfumato"
DESIGN = Path(__file__).parents[1] / "docs" / "design.md"
SHELL = {"store", "tables", "engines", "bridges", "service", "client", "studies", "plots", "cli"}
EXCEPTIONS = {
    "core/loop_cache.py": "compiled loops on disk",
    "core/loop_folders.py": "where loops lie: the environment says",
    "core/carried_loops.py": "loops that a wheel brings along",
    "explanations/artefacts.py": "a file is told by its first bytes",
    "explanations/proof_words.py": "a page of a report is told by its title",
    "stream/row_run.py": "how long a batch has waited",
    "stream/simulated_stream.py": "a simulation times itself",
    "stream/policy_files.py": "policies kept beside their model",
}
METHODS = {
    *("read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "iterdir"),
    *("glob", "rglob", "touch", "rename", "rmdir"),
}
NAMES = {
    *(("os", name) for name in ("environ", "getenv", "open", "remove", "listdir", "replace")),
    *(("time", name) for name in ("time", "monotonic", "perf_counter", "process_time", "sleep")),
    *(("datetime", name) for name in ("now", "today", "utcnow")),
}


def touched(text: str) -> Iterator[str]:
    """What a module does to files, clocks and the environment; asking whether a file is there
    is not meant."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                yield "open"
            case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(str()), *_]):
                yield "open"
            case ast.Call(func=ast.Attribute(attr=name)) if name in METHODS:
                yield name
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in NAMES:
                yield f"{module}.{name}"


def modules() -> Iterator[tuple[str, list[str]]]:
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        if where.split("/")[0] not in SHELL:
            yield where, list(touched(path.read_text("utf-8")))


def test_rooms_of_formulas_touch_nothing_but_by_name() -> None:
    found = {where: done for where, done in modules() if done}
    assert set(found) == set(EXCEPTIONS), found


def test_the_design_names_the_same_rooms_and_exceptions() -> None:
    text = DESIGN.read_text("utf-8")
    told = text[text.index("files, clocks and the environment") :].partition("Compiled loops")[0]
    assert [room for room in sorted(SHELL) if f"`{room}`" not in told] == []
    for where in EXCEPTIONS:
        room, name = where.removesuffix(".py").split("/")
        assert room in told and (name in told or room == "explanations"), where


@pytest.mark.parametrize(
    "line",
    ["open('a')", "path.open('rb')", "path.read_bytes()", "os.environ['A']", "time.monotonic()"],
)
def test_what_touches_is_seen(line: str) -> None:
    assert len(list(touched(line))) == 1


def test_what_does_not_is_not() -> None:
    assert list(touched("path.exists(); fleet.open(plan, 3); matrix.replace(x)")) == []
