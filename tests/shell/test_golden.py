"""Every command, the README and the library answer as they did: transcripts of seeded runs.

Words are compared exactly, numbers within a relative 1e-7, released values exactly (see
`tests.shell.golden_text`). A change that is meant is written down by
`python -m tests.shell.golden_record NAME`, and read in the difference before it is kept.
"""

import re
from pathlib import Path
from types import ModuleType

import pytest

import sfumato
from tests.shell import golden_cases, golden_python
from tests.shell.golden_record import FOLDER
from tests.shell.golden_text import differences, same

COMMAND_CASES = [
    pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.slow else [])
    for case in golden_cases.CASES
]


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all tables and models."""
    folder = tmp_path_factory.mktemp("staged")
    golden_cases.stage(folder)
    return folder


def check(name: str, got: str) -> None:
    """Fail with the lines that differ from what was recorded."""
    path = FOLDER / f"{name}.txt"
    found = differences(path.read_text(encoding="utf-8"), got)
    if found:
        pytest.fail("\n".join([f"{name} differs from {path.name}:", *found]), pytrace=False)


@pytest.mark.parametrize("case", COMMAND_CASES)
def test_commands_tell_what_they_told(
    case: golden_cases.Case, staged: Path, tmp_path: Path
) -> None:
    check(case.name, golden_cases.transcript(case, staged, tmp_path))


@pytest.mark.parametrize("name", golden_python.CASES)
def test_the_library_tells_what_it_told(name: str) -> None:
    check(name, golden_python.transcript(name))


# The comparison itself ----------------------------------------------------------------------------


def test_every_transcript_has_a_case_and_they_are_small() -> None:
    names = {case.name for case in golden_cases.CASES} | set(golden_python.CASES)
    assert {path.stem for path in FOLDER.iterdir()} == names
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 850_000


def test_every_refusal_is_one() -> None:
    for case in golden_cases.CASES:
        if case.name.startswith("refused-"):
            told = (FOLDER / f"{case.name}.txt").read_text(encoding="utf-8")
            assert "exit code 2" in told and "exit code 0" not in told, case.name


def test_no_case_draws_secure_coins() -> None:
    drawn = [
        step
        for case in golden_cases.CASES
        for step in case.steps[case.silent :]
        if step.startswith(golden_cases.DRAWN)
        and "--help" not in step
        and not case.name.startswith("refused-")
    ]
    assert len(drawn) > 80
    assert [step for step in drawn if "--seed" not in step and "--key-file" not in step] == []


def test_every_public_name_is_used() -> None:
    source = Path(golden_python.__file__).read_text(encoding="utf-8")
    rooms = {name for name in dir(sfumato) if isinstance(getattr(sfumato, name), ModuleType)}
    names = set(dir(sfumato)) - rooms
    assert [name for name in sorted(names) if not re.search(rf"sf\.{name}\b", source)] == []


@pytest.mark.parametrize(
    ("one", "other", "exact", "alike"),
    [
        ("loss 0.25 km", "loss 0.25 km", False, True),
        ("loss 0.25 km", "loss 0.2500000001 km", False, True),
        ("loss 0.25 km", "loss 0.250001 km", False, False),
        ("loss 0.25 km", "cost 0.25 km", False, False),
        ("SIP(0.5) of 1,200", "SIP(0.5000000001) of 1,200", False, True),
        ("SIP(0.5) of 1,200", "SIP(0.5) of 1,201", False, False),
        ("gap 3e-14", "gap 9e-14", False, True),
        ("gap 3e-9", "gap 9e-9", False, False),
        ("-1.5", "1.5", False, False),
        ("a 1", "a 1 2", False, False),
        ("ann,7.25,~0.5", "ann,7.25,~0.5000000001", True, True),
        ("ann,7.25,~0.5", "ann,7.25,~0.51", True, False),
        ("ann,7.25,~0.5", "ann,7.2500000001,~0.5", True, False),
        ("bakery, market", "bakery, school", True, False),
    ],
)
def test_lines_are_compared_word_by_word(one: str, other: str, exact: bool, alike: bool) -> None:
    assert same(one, other, exact) is alike


def test_a_difference_is_shown_with_its_place() -> None:
    old = "exit code 0\n--- out\nloss 0.25\n--- private.csv (exact)\nann,1.5\n"
    assert differences(old, old) == []
    assert differences(old, old.replace("0.25", "0.26")) == [
        "line 3, --- out",
        "  - loss 0.25",
        "  + loss 0.26",
    ]
    assert differences(old, old.replace("ann,1.5", "ann,1.50000000001"))
    assert differences(old, old + "more\n") == ["line 6, --- private.csv (exact)", "  + more"]
    assert len(differences("1\n" * 99, "2\n" * 99)) <= 25
