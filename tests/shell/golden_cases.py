"""Every command on small tables that are made here: what is run, and how it is told."""

import itertools
import math
import os
import random
import re
import shutil
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import typer

from sfumato.cli.app import app
from sfumato.store.catalogue import Catalogue, record
from sfumato.store.catalogue_contents import ReleaseContent
from sfumato.store.folder_home import FolderHome
from tests.shell.golden_text import lines_table, printed, shown, table
from tests.shell.running import call
from tests.shell.tables import PLACES, csv_bytes, walk

Step = str
"""A command line without `sfumato`; parts are separated by blanks, quotes keep blanks."""

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PAGES = ("streams", "service", "temporal", "series", "column", "record")
SECRET = b"thirty-two bytes for test coins!"
ENVIRONMENT = {"COLUMNS": "80", "LINES": "40", "NO_COLOR": "1"}


@dataclass(frozen=True)
class Case:
    """Some commands, one after another, in a folder of their own.

    Attributes:
        name: Of the case, and of the file with its transcript.
        steps: Command lines.
        silent: How many of the first are not told: another case does.
        slow: Whether it takes more than some seconds.
        unseen: Files, `out` or `err`, that are not shown: they change from run to run.
    """

    name: str
    steps: tuple[Step, ...]
    silent: int = 0
    slow: bool = False
    unseen: tuple[str, ...] = ()


# Tables ------------------------------------------------------------------------------------------


def _two_kinds(count: int, values: int) -> Iterator[tuple[str, str]]:
    """People of two kinds: those who stay where they are, and those who go round."""
    places = ("bakery", "clinic", "market", "school")
    for person in range(count):
        place = person // 2
        for moment in range(values):
            yield f"c{person}", places[place % 4]
            # Now and then either kind does what the other does.
            odd = (7 * person + 5 * moment) % 11 == 0
            place += (person % 2 == 0) == odd


def people(count: int) -> Iterator[tuple[Any, ...]]:
    """People with a name, a height, a weight, a blood pressure and a town."""
    rng = random.Random(4)
    for row in range(count):
        height = round(rng.gauss(170, 8), 1)
        weight = round(75 + 0.9 * (height - 170) + rng.gauss(0, 9), 1)
        pressure = round(100 + 0.4 * weight + rng.gauss(0, 8))
        yield f"p{row}", height, weight, pressure, rng.choice(["north", "south"])


def _survey(count: int, seed: int) -> Iterator[tuple[object, ...]]:
    rng = random.Random(seed)
    for row in range(count):
        school = rng.choice(["east", "west"])
        answers = (
            ["yes", "no", "no", "maybe"] if school == "east" else ["yes", "yes", "no", "maybe"]
        )
        grade, income = rng.randrange(6), round(rng.gauss(50, 12), 2)
        first, second = ((grade + rng.randrange(2)) % 6 for _ in range(2))
        yield f"p{row}", rng.choice(answers), grade, first, second, income, school


def _salaries(count: int) -> Iterator[tuple[object, ...]]:
    rng = random.Random(6)
    for _ in range(count):
        yield (round(rng.lognormvariate(11, 0.3), 2),)


def _timed(records: Iterable[tuple[str, str]], day: int = 1) -> Iterator[tuple[object, ...]]:
    for row, (person, place) in enumerate(records):
        yield person, place, f"2024-05-{day:02d}T{row // 60:02d}:{row % 60:02d}", row % 3, person


def _counts(length: int) -> Iterator[tuple[str, float]]:
    for row in range(length):
        value = 100 + 20 * math.sin(row / 5) + 10 * (row % 7 == 0)
        yield f"2024-{1 + row // 28:02d}-{1 + row % 28:02d}", round(value, 1)


def _moments(length: int) -> Iterator[tuple[str, int, int]]:
    """Counts of people at home and on the road, in two towns."""
    for row in range(2 * length):
        home = round(100 + 60 * math.sin(row / 3))
        yield "ab"[row % 2], home, 220 - home


def _restless(length: int) -> Iterator[tuple[str, str]]:
    """People who stay nowhere."""
    for row in range(length):
        yield f"u{row % 3}", PLACES[(row // 3 * 2 + row % 5) % len(PLACES)]


def tables() -> dict[str, bytes]:
    """Name of a file -> what is in it."""
    place, timed = ["person", "place"], ["person", "place", "when", "wave", "user"]
    survey = ["id", "answer", "final", "first", "second", "income", "school"]
    live = walk(7, rows=60)
    levels = walk(2, rows=400, symbols=("1", "2", "3"))
    numbers = [(person, 10.0 * float(level)) for person, level in levels]
    points = [(person, 5 + number / 100, 50 - number / 90) for person, number in numbers]
    gaps = [(who, "" if row % 5 == 3 else what) for row, (who, what) in enumerate(live)]
    strange = [(who, "moon" if row == 9 else what) for row, (who, what) in enumerate(live)]
    counts = list(_counts(60))
    holes = [(when, "" if row % 9 == 4 else cell) for row, (when, cell) in enumerate(counts)]
    body = ["id", "height", "weight", "pressure", "town"]
    return {
        "history.csv": csv_bytes(timed, _timed(walk(1, rows=400))),
        "kinds.csv": csv_bytes(["person", "place"], _two_kinds(24, 16)),
        "live.csv": csv_bytes(timed, _timed(live)),
        "monday.csv": csv_bytes(timed, _timed(live)),
        "tuesday.csv": csv_bytes(timed, _timed(walk(8, rows=40), 2)),
        "gaps.csv": csv_bytes(place, gaps),
        "restless.csv": csv_bytes(place, _restless(600)),
        "strange.csv": csv_bytes(place, strange),
        "levels.csv": csv_bytes(place, levels),
        "numbers.csv": csv_bytes(place, numbers),
        "points.csv": csv_bytes(["person", "lon", "lat"], points),
        "clicks.csv": csv_bytes(place, walk(21, rows=600)),
        "counts.csv": csv_bytes(["date", "cnt"], counts),
        "part.csv": csv_bytes(["date", "cnt"], counts[:25]),
        "holes.csv": csv_bytes(["date", "cnt"], holes),
        "people.csv": csv_bytes(body, people(60)),
        "crowd.csv": csv_bytes(body, people(240)),
        "survey.csv": csv_bytes(survey, _survey(120, 1)),
        "grades.csv": csv_bytes(survey, _survey(120, 3)),
        "salaries.csv": csv_bytes(["gross"], _salaries(200)),
        "public.csv": csv_bytes(survey, _survey(200, 2)),
        "loss.csv": b"0,1,2,3\n1,0,1,2\n2,1,0,1\n3,2,1,0\n",
        "prior.csv": b"value,probability\nmaybe,0.2\nno,0.5\nyes,0.3\n",
        "back.csv": b"0.8,0.2\n0.2,0.8\n",
        "forth.csv": b"0.8,0.2\n0.1,0.9\n",
        "moments.csv": csv_bytes(["town", "home", "road"], _moments(8)),
        "budgets.csv": b"0.1\n0.2\n0.3\n0.2\n0.1\n",
        "broken.model": b"sfumato\nand then nothing",
        "secret.key": SECRET,
    }


FIT = "--stream person --value place"
MODELS: dict[str, Step] = {
    "city.model": f"fit history.csv {FIT} -o city.model",
    "order2.model": f"fit history.csv {FIT} --order 2 -o order2.model",
    "levels.model": f"fit levels.csv {FIT} -o levels.model",
    "bins.model": f"fit numbers.csv {FIT} --bins 4 --range 0:40 --units W -o bins.model",
    "grid.model": "fit points.csv --stream person --grid 3x2 --x lon --y lat --units degrees "
    "-o grid.model",
    "clicks.model": f"fit clicks.csv {FIT} --batch 3 --patterns 40 -o clicks.model",
    "gaps.model": f"fit gaps.csv {FIT} --missing symbol -o gaps.model",
    "city.policy": "compile -m city.model --epsilon 0.5 --method step-wise --steps 100",
}
"""What most cases begin with, and which command makes it."""


def stage(folder: Path) -> None:
    """Fill a folder with all tables, the key and the models."""
    for name, data in tables().items():
        (folder / name).write_bytes(data)
    (folder / "secret.key").chmod(0o600)
    with _inside(folder):
        for step in MODELS.values():
            result = call(*split(step))
            assert result.code == 0, result.err
    with FolderHome(folder / "home") as home:
        rule = ReleaseContent("release", "{}")
        record(home.registry, Catalogue(), "first key", "release.created", "city", rule)


# Running -----------------------------------------------------------------------------------------


def split(step: Step) -> list[str]:
    """The parts of a command line; what stands between double quotes is one."""
    outer = step.split('"')
    return [
        part for place, text in enumerate(outer) for part in ([text] if place % 2 else text.split())
    ]


class _inside:
    """In a folder, with a terminal of a known width."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = mock.patch.dict(os.environ, ENVIRONMENT)

    def __enter__(self) -> None:
        self._before = Path.cwd()
        os.chdir(self._folder)
        self._environment.start()

    def __exit__(self, *problem: object) -> None:
        self._environment.stop()
        os.chdir(self._before)


def transcript(case: Case, staged: Path, folder: Path) -> str:
    """Run a case in a copy of a staged folder: what was printed, and every file that is new."""
    shutil.copytree(staged, folder, dirs_exist_ok=True)
    lines: list[str] = []
    with _inside(folder), _service(case) as url:
        for place, step in enumerate(case.steps):
            before = _files(folder)
            result = call(*split(step.replace(SERVICE, url)))
            if place < case.silent:
                assert result.code == 0, f"{step}: {result.err}"
                continue
            lines += [f"$ sfumato {step}", f"exit code {result.code}"]
            lines += _told("out", result.out, folder, case.unseen, step.endswith("-o -"))
            lines += _told("err", result.err, folder, case.unseen)
            for path, data in _files(folder).items():
                if before.get(path) == data:
                    continue
                if path.name in case.unseen:
                    lines.append(f"--- {path.name} is there")
                else:
                    lines += shown(path, folder)
    return "\n".join(lines) + "\n"


@contextmanager
def _service(case: Case) -> Iterator[str]:
    """The address of a service, where a case asks one; what it answers is always the same."""
    if not any(SERVICE in step for step in case.steps):
        yield ""
        return
    from tests.service.echoed import KEY, echoed

    with echoed() as url, mock.patch.dict(os.environ, {"SFUMATO_ACCESS_KEY": KEY}):
        yield url


def _files(folder: Path) -> dict[Path, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in found if not path.name.startswith(".")}


def _told(
    name: str, text: str, folder: Path, unseen: Container[str] = (), released: bool = False
) -> list[str]:
    if not text or name in unseen:
        return []
    if released:
        return [f"--- {name} (exact)", *table(lines_table(text) if text[0] == "{" else text)]
    return [f"--- {name}", *printed(text, folder)]


# Cases -------------------------------------------------------------------------------------------


def _command_names(group: Any, before: str = "") -> Iterator[str]:
    """All commands and groups of commands, as they are typed."""
    for name, command in group.commands.items():
        yield f"{before}{name}"
        if hasattr(command, "commands"):
            yield from _command_names(command, f"{before}{name} ")


COMMANDS = tuple(_command_names(typer.main.get_command(app)))
DRAWN = ("release ", "privatize ", "publish ", "realtime ")
SEED = "--seed 5"
SERVICE = "SERVICE"
"""Stands for the address of a service; another one in each run."""
KEY = "--key-file secret.key"
RELEASE = "release live.csv -m city.model -o private.csv"
AUDIT = "audit private.csv -m city.model --simulation"


def _pinned(case: Case) -> Case:
    """A case of something else: step by step and evenly, so that no value function is made."""
    return replace(case, steps=tuple(map(_pin, case.steps)))


def _pin(step: Step) -> Step:
    if not isinstance(step, str) or not step.startswith(("release ", "compile ", "plan ")):
        return step
    if any(word in step for word in ("--method", "--every", "--batch", "order2", "clicks")):
        return step
    if "--budget" in step:
        return step if step.startswith("plan ") else _with(step, "--every 1")
    pinned = "--policy" not in step and "--epsilon" in step
    return _with(step, "--method step-wise") if pinned else step


def _with(step: str, option: str) -> str:
    return re.sub(r"(-m \S+)", rf"\1 {option}", step, count=1)


def _help() -> Iterator[Case]:
    yield Case("help", ("--help", "--version"))
    for command in COMMANDS:
        yield Case(f"help-{command.replace(' ', '-')}", (f"{command} --help",))


def _push() -> Iterator[Case]:
    push = f"push live.csv --to {SERVICE} --stream user --value place"
    again = f"{push} --source monday -o again.csv --json --quiet"
    yield Case("push", (f"{push} --source monday -o private.csv --quiet", again))
    anew = (f"{push} --source monday -o private.csv", f"{push} --source tuesday -o b.csv")
    yield Case("push-anew", anew)
    yield Case("push-pipe", (f"{push} --source monday -o -",))
    opened = push.replace(SERVICE, "http://gate.example")
    yield Case("refused-push-keyless", (f"{opened} --source monday -o private.csv",))
    yield Case("refused-push-nameless", (f"{push} -o private.csv",))


def _fit() -> Iterator[Case]:
    for name, step in MODELS.items():
        stem = name.replace(".", "-")
        if name.endswith(".model"):
            yield Case(f"fit-{stem}", (step.replace(name, "new.model"), f"{step} --json"))
    more = {
        "bins": "fit numbers.csv --bins 3",
        "smooth": "fit history.csv --smoothing 2 --floor 0.001",
        "drop": "fit gaps.csv --missing drop",
        "skip": "fit gaps.csv --missing skip",
        "small": "fit strange.csv",
        "clusters": "fit kinds.csv --clusters 2",
    }
    for name, step in more.items():
        yield Case(f"fit-{name}", (f"{step} {FIT} -o new.model",))
    # Noise cannot be repeated, so a private fit has no transcript; what it refuses has.
    private = f"fit history.csv {FIT} --private 1"
    yield Case(
        "fit-private-refused",
        (
            f"{private} -o new.model",
            f"{private} --bins 4 -o new.model",
            f"{private} --values a,b --order 2 -o new.model",
            f"{private} --values a,b,a -o new.model",
            f"{private} --values a,b --batch 2 -o new.model",
            f"{private} --values a,b --missing symbol -o new.model",
            f"{private} --values a,b -o city.model",
            f"fit history.csv {FIT} --contribution 3 -o new.model",
        ),
    )


def _release() -> Iterator[Case]:
    rules = {
        "epsilon": "--epsilon 0.5",
        "budget-horizon": "--budget 10 --horizon 50",
        "budget-50": "--budget 50 --horizon 50",
        "bursts": "--budget 6 --horizon 50 --every 5 --first 1.5 --cap 1",
        "window": "--budget 2 --window 4",
        "window-long": "--budget 10 --window 50",
        "ldp": "--epsilon 0.5 --ldp 0.7",
        "loss-file": "--epsilon 0.5 --loss loss.csv",
        "calibrated": "--epsilon 0.5 --method calibrated",
        "randomized-response": "--epsilon 0.5 --method randomized-response",
        "context-free": "--epsilon 0.5 --method context-free",
        "published": "--epsilon 0.5 --method published",
        "policy": "--epsilon 0.5 --policy city.policy",
        "batch": "--epsilon 0.5 --batch 3",
        "batch-histogram": "--epsilon 0.5 --batch 2 --loss histogram",
        "batch-window": "--budget 2 --window 4 --batch 2",
        "batch-response": "--epsilon 0.5 --batch 3 --method randomized-response",
    }
    for name, rule in rules.items():
        yield Case(f"release-{name}", (f"{RELEASE} {rule} {SEED}", AUDIT))
    for loss in ("hamming", "absolute", "squared"):
        rule = f"release levels.csv -m levels.model --epsilon 0.7 --loss {loss} {KEY}"
        yield Case(f"release-levels-{loss}", (f"{rule} -o private.csv",))
    others = {
        "order2": ("live.csv", "order2.model", ""),
        "bins": ("numbers.csv", "bins.model", "--batch 2"),
        "grid": ("points.csv", "grid.model", ""),
        "grid-euclidean": ("points.csv", "grid.model", "--loss euclidean --batch 2"),
        "library": ("live.csv", "clicks.model", "--batch 3"),
        "gaps": ("gaps.csv", "gaps.model", "--missing symbol"),
    }
    for name, (source, model, more) in others.items():
        rule = f"release {source} -m {model} --epsilon 0.5 {more} {SEED} -o private.csv"
        audit = f"audit private.csv -m {model} --simulation --against {source}"
        told = (
            (audit,) if name not in ("gaps",) else (f"audit private.csv -m {model} --simulation",)
        )
        yield Case(f"release-{name}", (rule, *told))


def _periodic() -> Iterator[Case]:
    times = "--time when --keep when"
    yield Case(
        "release-periodic",
        (
            f"fit history.csv {FIT} --time when --period hour -o day.model",
            "explain day.model",
            f"release live.csv -m day.model --epsilon 0.5 {times} {SEED} -o private.csv",
            "audit private.csv -m day.model --simulation --against live.csv",
            f"release live.csv -m day.model --epsilon 0.5 --time when {SEED} -o other.csv",
            "plan -m day.model --epsilon 0.5",
            "recover private.csv -m day.model -o guesses.csv",
        ),
        unseen=("day.model",),
    )


def _release_otherwise() -> Iterator[Case]:
    rest = f"-m city.model {SEED}"
    short = "--budget 3 --horizon 6"
    yield Case(
        "release-keyed",
        (
            f"{RELEASE} --epsilon 0.5 {KEY}",
            f"release live.csv -m city.model --epsilon 0.5 {KEY} -o other.jsonl --json",
            f"release live.csv -m city.model --epsilon 0.5 --batch 2 {KEY} -o batches.csv --quiet",
        ),
    )
    for name in ("suppress", "repeat", "refuse"):
        yield Case(f"exhausted-{name}", (f"{RELEASE} {short} {SEED} --when-exhausted {name}",))
        yield Case(
            f"exhausted-batch-{name}",
            (f"{RELEASE} {short} {SEED} --batch 2 --when-exhausted {name}",),
        )
    for name in ("suppress", "repeat", "substitute", "refuse"):
        step = f"release strange.csv {rest} --epsilon 0.5 --when-unknown {name} -o private.csv"
        yield Case(f"unknown-{name}", (step, AUDIT) if name != "refuse" else (step,))
    for name in ("drop", "skip", "refuse"):
        step = f"release gaps.csv {rest} --epsilon 0.5 --missing {name} -o private.csv"
        yield Case(f"missing-{name}", (step, AUDIT) if name != "refuse" else (step,))
    skipped = f"release gaps.csv {rest} --epsilon 0.5 --missing skip -o private.csv"
    yield Case("missing-policy", (f"{skipped} --policy city.policy",))
    yield Case("missing-batch", (f"{skipped} --batch 2",))
    days = f"-m city.model --budget 10 --window 50 --time when --keep when --ledger l {KEY}"
    yield Case(
        "days",
        (
            f"release monday.csv {days} -o monday-private.csv",
            f"release tuesday.csv {days} -o tuesday-private.csv --json",
            f"release monday.csv {days} -o monday-again.csv --json",
            "audit tuesday-private.csv -m city.model --ledger l",
            "audit monday-private.csv tuesday-private.csv -m city.model --ledger l --json "
            "--against monday.csv --against tuesday.csv --window 5 --coverage whole",
            "audit --ledger l -m city.model",
            "ledger check l",
            "ledger check l --json",
            "ledger export l -o answers.csv",
            "ledger backup l copy --json",
            "ledger backup l copy",
        ),
    )
    ledgered = f"{RELEASE} --epsilon 0.5 --ledger l {KEY}"
    yield Case(
        "resume",
        (
            ledgered,
            ledgered.replace("private", "second"),
            f"{ledgered.replace('private', 'second')} --resume --json",
            f"{ledgered.replace('private', 'third')} --append --json",
            f"{AUDIT} --ledger l --json",
        ),
    )
    yield Case(
        "resume-seeded",
        (
            f"{RELEASE} --epsilon 0.5 --ledger l {SEED}",
            f"release live.csv -m city.model --epsilon 1 --ledger l {SEED} -o second.csv --resume",
            f"{AUDIT} --ledger l",
        ),
    )
    yield Case(
        "resume-batch",
        (
            f"{ledgered} --batch 3",
            f"{ledgered.replace('private', 'second')} --batch 3 --resume --json",
            f"{AUDIT} --ledger l",
        ),
    )
    yield Case(
        "store",
        (
            f"{RELEASE} --epsilon 0.5 --ledger home/ledgers/city.ledger {KEY}",
            "store check home --write-anchor anchor.json",
            "store export home --release city -o answers.csv",
            "store export home --release town -o answers.csv",
            "store migrate home",
            "store backup home copy",
            "store backup home copy",
            "store check copy --expect-anchor anchor.json",
            "store restore copy --to home",
            "store restore copy --to new",
            "store restore copy --to new --anchor copy/anchor.json",
            "store restore copy --to new --anchor anchor.json",
            "store restore copy --to other --accept-unanchored",
        ),
        silent=1,
        unseen=("anchor.json",),
    )
    yield Case(
        "release-columns",
        (
            f"release monday.csv {rest} --epsilon 1 --event when --keep wave "
            "--independent wave --source day -o private.csv --json",
            f"release monday.csv {rest} --epsilon 1 --time when --late accept -o -",
            f"release monday.csv {rest} --epsilon 1 --format jsonl -o -",
        ),
    )


def _audit() -> Iterator[Case]:
    made = f"{RELEASE} --epsilon 0.5 {SEED}"
    yield Case(
        "audit",
        (
            made,
            AUDIT,
            "audit private.csv -m city.model",
            f"{AUDIT} --json",
            f"{AUDIT} --against live.csv --window 5",
            f"{AUDIT} --against live.csv --window 5 --json",
            "audit private.csv -m order2.model",
            "audit live.csv -m city.model --plan private.csv.plan.json",
        ),
        silent=1,
    )
    truth = f"{AUDIT} --truth order2.model"
    yield Case(
        "audit-truth",
        (
            made,
            f"{truth} -o leaked.csv",
            f"{AUDIT} --truth city.model --radius 0.05",
            f"{AUDIT} --radius 0.05 --json",
            f"{truth} --radius 0.05",
            f"{AUDIT} --radius 0.05 --plausible chains.set",
            f"{AUDIT} -o leaked.csv",
            f"{truth} -o live.csv",
        ),
        silent=1,
    )
    near = f"{RELEASE} --epsilon 0.5 --robust 0.05"
    yield Case(
        "audit-robust",
        (
            f"{near} {SEED}",
            AUDIT,
            f"{AUDIT} --radius 0.05",
            f"{near} --batch 2 {SEED}",
            f"{near} --method far-sighted {SEED}",
            "plan -m city.model --epsilon 0.5 --robust 0.05 --length 8 --streams 2",
            "plan -m city.model --epsilon 0.5 --robust 0.05 --length 8 --streams 2 --json",
            "plan -m city.model --epsilon 0.5 --robust 0.05 --batch 2",
        ),
        silent=1,
    )
    batched = f"{RELEASE} --epsilon 0.5 --batch 3 {SEED}"
    yield Case(
        "audit-batch", (batched, f"{AUDIT} --against live.csv --json", f"{AUDIT} -q"), silent=1
    )


def _recover() -> Iterator[Case]:
    again = "recover private.csv -m city.model"
    yield Case(
        "recover",
        (
            f"{RELEASE} --epsilon 1 {SEED}",
            f"{again} -o guesses.csv --counts hours.csv --every 5 --flows moves.csv",
            f"{again} --lag 1 --loss loss.csv --cover 0.5 --json",
            f"{again} -q -o -",
        ),
        silent=1,
    )
    yield Case(
        "recover-batch",
        (f"{RELEASE} --epsilon 0.5 --batch 2 {SEED}", f"{again} --counts hours.csv"),
        silent=1,
    )
    yield Case(
        "recover-policy",
        (f"{RELEASE} --epsilon 0.5 --policy city.policy {SEED}", f"{again} -q"),
        silent=1,
    )
    free = f"{again} --counts hours.csv --model-free -q"
    response = f"{RELEASE} --epsilon 1 --method randomized-response {SEED}"
    yield Case("recover-model-free", (response, free), silent=1)
    counts = f"realtime counts.csv --value cnt --sensitivity 1 --epsilon 2 {SEED} -o private.csv"
    yield Case(
        "recover-series",
        (f"{counts} --method gaussian", "recover private.csv -o smooth.csv"),
        silent=1,
    )
    graded = f"privatize grades.csv -c final --epsilon 2 --mechanism unary-encoding {SEED}"
    yield Case(
        "recover-column",
        (f"{graded} -o private.csv", "recover private.csv", "recover live.csv"),
        silent=1,
    )
    yield Case(
        "refused-recover",
        (
            f"{RELEASE} --epsilon 1 {SEED}",
            f"{again} --lag -1",
            f"{again} --cover 1.5",
            f"{again} -o private.csv",
            f"{again} -o private.csv.plan.json",
            f"{again} --counts a.csv --flows a.csv",
            f"{again} --counts a.csv --every 2 --model-free",
            f"{again} --counts a.csv --every 2 --lag 1",
            "recover private.csv --cover 7 --every -4",
            "recover live.csv -m city.model",
            "recover live.csv -m city.model --plan private.csv.plan.json",
            "recover private.csv -m order2.model",
            f"{again} --policy city.policy",
        ),
        silent=1,
    )


def _clusters() -> Iterator[Case]:
    """A mixture of chains through every command that knows one, and what refuses it."""
    fit, model = f"fit kinds.csv {FIT} --clusters 2 -o two.model", "-m two.model"
    response = "--method randomized-response"
    yield Case(
        "clusters",
        (
            fit,
            f"{fit} --json",
            "explain two.model",
            f"release kinds.csv {model} --epsilon 1 {SEED} -o private.csv",
            f"audit private.csv {model} --simulation",
            f"audit private.csv {model} --simulation --truth city.model",
            f"recover private.csv {model} -o guessed.csv",
            f"plan {model} --epsilon 1 --streams 3 --length 8",
            f"release kinds.csv {model} --epsilon 2 {response} {SEED} -o more.csv",
            f"learn more.csv {model} --clusters 2 -o learnt.model",
            f"learn more.csv {model} --clusters 2 -o learnt.model --json",
        ),
        silent=1,
    )
    release = f"release kinds.csv {model} --epsilon 1 {SEED} -o private.csv"
    yield Case(
        "refused-clusters",
        (
            fit,
            f"{release} {response}",
            f"{release} --method far-sighted",
            f"{release} --batch 2",
            f"{release} --robust 0.1",
            f"compile {model} --epsilon 1",
            f"plan {model} --epsilon 1 --batch 2",
            f"fit kinds.csv {FIT} --clusters 2 --order 2 -o new.model",
            f"fit kinds.csv {FIT} --clusters 2 --private 1 --values a,b -o new.model",
            f"fit kinds.csv {FIT} --clusters 2 --missing skip -o new.model",
            f"fit kinds.csv {FIT} --clusters some -o new.model",
            f"fit kinds.csv {FIT} --clusters 900 -o new.model",
            "fit --uniform --values a,b --clusters 2 -o new.model",
            f"learn private.csv {model} -o learnt.model",
            f"learn private.csv {model} -o learnt.model --clusters 2 --order 2",
        ),
        silent=2,
    )


def _learn() -> Iterator[Case]:
    again = "learn private.csv -m city.model -o learnt.model"
    response = f"{RELEASE} --epsilon 2 --method randomized-response {SEED}"
    proven = (f"{again} --order 1 --plausible chains.set", f"{AUDIT} --plausible chains.set")
    yield Case("learn", (response, again, f"{again} --order 1 --json", *proven), silent=1)
    bins = "fit --uniform --value watts --bins 4 --range 0:8 --units W -o bins.model --json"
    yield Case("fit-uniform", ("fit --uniform --values a,b,c -o start.model", bins))
    yield Case(
        "refused-learn",
        (
            f"{RELEASE} --epsilon 1 --method step-wise {SEED}",
            f"{again} --order 3",
            f"{again} --plausible learnt.model",
            f"{again} --plausible chains.set",
            "learn private.csv -m city.model -o city.model",
            "learn live.csv -m city.model -o learnt.model",
            "learn private.csv -m order2.model -o learnt.model",
            "fit -o start.model",
            "fit --uniform -o start.model",
            "fit --uniform --bins 4 -o start.model",
            "fit history.csv --uniform --values a,b -o start.model",
            "fit history.csv --values a,b -o start.model",
        ),
        silent=1,
    )


def _drift() -> Iterator[Case]:
    response = f"{RELEASE} --epsilon 2 --method randomized-response {SEED}"
    again = "drift private.csv -m city.model"
    yield Case("drift", (response, again, f"{again} --along moments --block 20 --json"), silent=1)
    other = response.replace("live.csv", "restless.csv")
    found = (f"{again} --plot drift.png", f"{again} --radius 0.01 --alpha 0.001 --quiet")
    yield Case("drift-found", (other, *found), silent=1, unseen=("drift.png",))
    yield Case(
        "refused-drift",
        (
            response,
            f"{again} --alpha 2",
            f"{again} --along time",
            f"{again} --block 0",
            f"{again} --plot drift.txt",
            f"{again} --radius 0.1 --plausible chains.set",
            "drift live.csv -m city.model",
            "drift private.csv -m order2.model",
        ),
        silent=1,
    )


def _attack() -> Iterator[Case]:
    again = "attack private.csv -m city.model"
    yield Case(
        "attack",
        (
            f"{RELEASE} --epsilon 1 {SEED}",
            again,
            f"{again} --against live.csv --known history.csv --top 2 -o guesses.csv",
            f"{again} --lag 0 --loss loss.csv --known history.csv --json",
        ),
        silent=1,
    )
    yield Case(
        "attack-batch",
        (f"{RELEASE} --epsilon 0.5 --batch 2 {SEED}", f"{again} -q --against live.csv"),
        silent=1,
    )
    yield Case(
        "refused-attack",
        (
            f"{RELEASE} --epsilon 1 {SEED}",
            f"{again} --lag -1",
            f"{again} --top 0",
            f"{again} --order 2",
            f"{again} -o private.csv",
            f"{again} --plot picture.txt",
            f"{again} --json -o -",
            f"{again} --against history.csv",
            "attack live.csv -m city.model",
        ),
        silent=1,
    )


def _plan() -> Iterator[Case]:
    size = "--steps 6 --streams 3"
    yield Case("plan-epsilon", (f"plan -m city.model --epsilon 0.5 {size}",))
    yield Case("plan-json", (f"plan -m levels.model --epsilon 0.5 --loss absolute {size} --json",))
    yield Case("plan-horizon", (f"plan -m city.model --budget 10 --horizon 50 {size}",))
    yield Case("plan-window", (f"plan -m city.model --budget 2 --window 4 {size} --seed 2",))
    yield Case(
        "plan-history",
        ("plan -m city.model --epsilon 1 --history live.csv --streams 1 --steps 4 --json",),
    )
    yield Case("plan-grid", (f"plan -m grid.model --epsilon 1 {size} --plot loss.png",))
    yield Case("plan-order2", (f"plan -m order2.model --epsilon 1 {size}",))
    batches = "plan -m city.model --epsilon 0.5 --batch 1,2,3"
    yield Case("plan-batch", (f"{batches} --steps 6", f"{batches} --steps 3 --json"))
    compiled = "compile -m city.model --epsilon 0.5 --steps 60 -o own.policy"
    yield Case("compile", (compiled, f"{compiled} --json"))
    yield Case(
        "compile-levels",
        (
            "compile -m levels.model --budget 10 --horizon 40 --ldp 20 --loss absolute "
            "--steps 40 --max-channels 20 -o own.policy",
        ),
    )
    yield Case("compile-batch", (f"{compiled} --batch 2",))


def _design() -> Iterator[Case]:
    belief = "design --belief 0.1,0.2,0.7 --epsilon 1"
    yield Case(
        "design",
        (
            belief,
            f"{belief} --json",
            *(
                f"{belief} --method {name} --loss absolute"
                for name in ("optimal", "calibrated", "randomized-response", "context-free")
            ),
            f"{belief} --method published --loss squared --json",
            f"{belief} --ldp 1.2 --json",
        ),
    )
    given = "implied --prior 0.7,0.1,0.1,0.1 --epsilon 1"
    yield Case(
        "implied",
        (given, f"{given} --times 3 --json", f"{given} --other 0.6,0.2,0.1,0.1 --samples 10000"),
    )


def _privatize() -> Iterator[Case]:
    def released(column: str, more: str) -> Step:
        return f"privatize survey.csv -c {column} --epsilon 1 {more} -o private.csv"

    symbols = (
        *("optimal", "calibrated", "context-free", "published"),
        *("randomized-response", "unary-encoding", "subset-selection"),
    )
    for name in symbols:
        yield Case(f"privatize-{name}", (released("answer", f"--mechanism {name} {SEED}"),))
    numbers = (
        *("optimal", "laplace", "laplace-each", "quantile-response", "sampling"),
        *("laplace-local",),
    )
    interval = f"--range 0:100 --points 40 {SEED}"
    for name in numbers:
        yield Case(
            f"privatize-number-{name}", (released("income", f"--mechanism {name} {interval}"),)
        )
    for name in ("gaussian", "gaussian-each", "gaussian-local"):
        yield Case(
            f"privatize-number-{name}",
            (released("income", f"--mechanism {name} --delta 0.001 {interval}"),),
        )
    others = {
        "json": ("answer", f"--json {SEED}"),
        "keyed": ("answer", f"{KEY} --keep id --id id --independent id"),
        "keep": ("answer", f"--keep school {SEED} --compare"),
        "keep-several": ("answer", f"--keep id,school --independent id {SEED} --order shuffled"),
        "compare": ("income", f"--compare --prior mixture {interval}"),
        "features": (
            "final",
            f"--prior features:first --history public.csv --values 0,1,2,3,4,5 --as symbols {SEED}",
        ),
        "history": ("answer", f"--history public.csv {SEED} --json"),
        "absolute": ("final", f"--as symbols --loss absolute --ldp 1.5 {SEED}"),
        "radius": ("answer", f"--radius 0.05 {SEED}"),
        "ratio": ("answer", f"--ratio 1.2 {SEED}"),
        "prior-file": ("answer", f"--prior prior.csv {SEED}"),
    }
    for name, (column, more) in others.items():
        yield Case(f"privatize-{name}", (released(column, more),))


def _columns() -> Iterator[Case]:
    asked = "--table people.csv --columns height,weight --accuracy 2"
    ways = {
        "ball": "--sigma 6 --coupling none",
        "gaussian": "--sigma 8 --noise gaussian --coupling gaussian",
        "uniform": '--sigma 6,8 --noise uniform --coupling "weight ~ height" --degree 1',
        "laplace": "--sigma 6 --noise laplace --coupling none",
        "equation": '--sigma 6 --noise uniform --coupling "weight = 0.9*height - 78"',
        "correlation": "--sigma 6 --noise gaussian --coupling gaussian --correlation 0.4",
        "target": "--noise gaussian --coupling gaussian --target-delta 0.15",
        "domain": "--sigma 6 --coupling gaussian --domain height=140:200 --domain weight=30:130",
    }
    for name, way in ways.items():
        long = name in ("uniform", "equation", "domain")  # `publish` takes half as long
        yield Case(f"disclosure-{name}", (f"disclosure {asked} {way}",), slow=long)
        yield Case(f"publish-{name}", (f"publish {asked} {way} {SEED} -o noisy.csv",))
    kernel = f"disclosure {asked} --sigma 6 --coupling kernel --json"
    yield Case("disclosure-kernel", (kernel,), slow=True)
    yield Case("disclosure-mixture", (f"disclosure {asked} --sigma 6 --json",))
    crowd = "--table crowd.csv --columns weight,pressure --accuracy 3,5 --sigma 8 --noise gaussian"
    normal = "--coupling gaussian"
    yield Case("disclosure-crowd", (f"disclosure {crowd} {normal}",), slow=True)
    papers = f"disclosure {asked} {ways['correlation']} --papers"
    yield Case("disclosure-papers", (papers,))
    kept = "--keep town,id --independent id"
    yield Case("publish-keep", (f"publish {crowd} {normal} {kept} {SEED} -o noisy.csv",), slow=True)
    yield Case(
        "publish-keyed", (f"publish {asked} --sigma 6 --coupling none {KEY} -o noisy.csv --json",)
    )
    yield Case(
        "publish-shuffled",
        (f"publish {asked} --sigma 6 --coupling none --order shuffled {SEED} -o noisy.csv",),
    )
    one = "--table people.csv --columns height --accuracy 2 --sigma 6 --noise best"
    yield Case("disclosure-best", (f"disclosure {one} {normal} --json",))
    yield Case("publish-best", (f"publish {one} {normal} {SEED} -o noisy.csv",), slow=True)
    three = "--table people.csv --columns height,weight,pressure --accuracy 3 --sigma 9"
    yield Case("disclosure-three", (f"disclosure {three} --noise gaussian {normal}",), slow=True)


def _series() -> Iterator[Case]:
    def released(more: str, source: str = "counts.csv") -> Step:
        given = f"realtime {source} --value cnt --sensitivity 1 --epsilon 2"
        return f"{given} {SEED} {more} -o private.csv"

    methods = (
        *("realtime", "published-geometric", "gaussian", "laplace", "laplace-filtered"),
        *("discrete-gaussian", "binomial", "fast-sampling", "bd", "ba"),
        *("tree", "square-root-tree", "pegasus", "whole-laplace", "event-realtime"),
        *("event-gaussian", "event-laplace", "event-laplace-filtered"),
    )
    for name in methods:
        window = " --window 8" if name in ("bd", "ba") else ""
        yield Case(f"realtime-{name}", (released(f"--method {name}{window}"),))
    others = {
        "published": "--method published --weight 0.6",
        "event": "--unit event --json",
        "period": "--time date --keep date --period weekday --range 0:200 --plot private.png",
        "rows": "--period 7 --delta 1e-5 --json",
        "tuned": "--method fast",
        "whole": "--method tops",
    }
    for name, more in others.items():
        yield Case(f"realtime-option-{name}", (released(more),))
    yield Case("realtime-missing", (released("--missing skip", "holes.csv"),))
    given = "--value cnt --sensitivity 1 --epsilon 2"
    parts = f"{given} {SEED} --length 80 --state year.state"
    yield Case(
        "realtime-state",
        (
            f"realtime part.csv {parts} -o private.csv",
            f"realtime counts.csv {parts} -o rest.csv",
            f"realtime counts.csv {parts} -o nothing.csv",
        ),
    )
    yield Case("realtime-keyed", (f"realtime counts.csv {given} {KEY} --json -o private.csv",))
    given = "compare counts.csv --value cnt --sensitivity 1 --epsilon 2 --runs 2"
    yield Case("compare", (f"{given} --rows 40 --window 8",))
    yield Case("compare-json", (f"{given} --methods realtime,gaussian,bd,fast,silence --json",))
    yield Case(
        "compare-variance",
        (f"{given} --methods realtime,laplace,tree --match variance --period 7",),
    )


def _temporal() -> Iterator[Case]:
    both = "--backward back.csv --forward forth.csv"
    yield Case(
        "temporal-leakage",
        (
            f"temporal leakage {both} --epsilon 0.1 --steps 10",
            f"temporal leakage {both} --epsilon budgets.csv --window 2 --json",
            "temporal leakage --backward back.csv --epsilon 0.1 --steps 5 --json",
            "temporal leakage --backward city.model --epsilon budgets.csv --json",
            "temporal leakage --model order2.model --epsilon 0.1 --steps 6 --window 3",
        ),
    )
    asked = f"temporal allocate --alpha 1 {both}"
    yield Case(
        "temporal-allocate",
        (
            asked,
            f"{asked} --json",
            f"{asked} --steps 10 --json",
            f"{asked} --steps 6 --least-noise --json",
            f"{asked} --steps 6 --published --json",
            "temporal allocate --alpha 1 --forward city.model --steps 4",
        ),
    )
    yield Case(
        "temporal-fit",
        (
            f"temporal fit history.csv {FIT} -o town",
            f"temporal fit history.csv {FIT} --smoothing 0 -o still --json",
            "temporal allocate --alpha 1 --backward town.backward.csv --forward town.forward.csv",
        ),
    )
    counts = f"temporal release moments.csv --stream town --value home --value road {both}"
    answers = "temporal release live.csv --stream person --value place --mechanism response"
    yield Case(
        "temporal-release",
        (
            f"{counts} --alpha 1 --seed 5 -o private.csv",
            "temporal audit private.csv --simulation",
            "temporal audit private.csv --json",
            f"{counts} --alpha 1 --seed 5 --steps 8 --allocation paper -o paper.csv --json",
            f"{answers} --alpha 2 --backward city.model --forward city.model --seed 5 -o own.csv",
            f"{answers} --alpha 2 --backward back.csv -o refused.csv",
        ),
    )
    yield Case("temporal-plot", (f"temporal plot {both} --epsilon 0.1 --steps 10 -o leakage.png",))


def _refusals() -> Iterator[Case]:
    steps = {
        "no-model": "plan --model nowhere.model --epsilon 1",
        "broken-model": "plan --model broken.model --epsilon 1",
        "no-rule": RELEASE,
        "two-rules": f"{RELEASE} --epsilon 1 --budget 3 --horizon 4",
        "no-horizon": f"{RELEASE} --budget 3",
        "epsilon": f"{RELEASE} --epsilon -1",
        "method": f"{RELEASE} --epsilon 1 --method magic",
        "loss": f"{RELEASE} --epsilon 1 --loss unheard-of",
        "key-and-seed": f"{RELEASE} --epsilon 1 {SEED} {KEY}",
        "resume": f"{RELEASE} --epsilon 1 --resume",
        "unknown": "release strange.csv -m city.model --epsilon 1 -o private.csv",
        "policy": "release levels.csv -m levels.model --epsilon 0.5 --policy city.policy -o p.csv",
        "keep": "release monday.csv -m city.model --epsilon 1 --keep place -o private.csv",
        "wrong-call": "release live.csv",
        "no-command": "unheard-of",
        "column": "fit history.csv --stream nobody --value place -o new.model",
        "grid": "fit points.csv --stream person --grid 3 --x lon --y lat -o new.model",
        "belief": "design --belief 0.5,0.6 --epsilon 1",
        "prior": "implied --prior 1.0,0.0 --epsilon 1",
        "symbols": "privatize survey.csv -c id --epsilon 1 -o private.csv",
        "delta": "privatize survey.csv -c answer --epsilon 1 --delta 0.1 -o private.csv",
        "mechanism": "privatize survey.csv -c answer --epsilon 1 --mechanism magic -o private.csv",
        "noise": "publish -t people.csv -c height --accuracy 2 --noise magic --sigma 2 -o n.csv",
        "no-sigma": "publish -t people.csv -c height,weight --accuracy 2 -o noisy.csv",
        "series": "realtime counts.csv --sensitivity 1 --epsilon 1 -o private.csv",
        "sensitivity": "realtime counts.csv --value cnt --sensitivity 0 --epsilon 1 -o private.csv",
        "holes": "realtime holes.csv --value cnt --sensitivity 1 --epsilon 1 -o private.csv",
        "matrix": "temporal leakage --backward loss.csv --epsilon 0.1 --steps 3",
        "alpha": "temporal allocate --alpha 0 --backward back.csv",
        "ledger": "ledger check nowhere",
        "no-ledger": "ledger check live.csv",
        "study": "study unheard-of -o study",
    }
    for name, step in steps.items():
        yield Case(f"refused-{name}", (step,))
    yield Case("refused-again", (f"{RELEASE} --epsilon 1", f"{RELEASE} --epsilon 1"), silent=1)


def _long() -> Iterator[Case]:
    # The demo releases with secure coins; the town itself is seeded.
    yield Case("demo", ("demo -o town",), slow=True, unseen=("out", "err", "private.csv"))
    for name in ("sip-figure-5", "lip-figures"):
        # The numbers and claims are those that are printed.
        again = ("results.json",)
        yield Case(f"study-{name}", (f"study {name} --quick -o study",), slow=True, unseen=again)


def _defaults() -> Iterator[Case]:
    """What a release does that was told a budget and nothing else."""
    yield Case(
        "release-far-sighted",
        (
            f"release levels.csv -m levels.model --epsilon 0.7 {SEED} -o private.csv",
            "audit private.csv -m levels.model --simulation --against levels.csv",
            "recover private.csv -m levels.model -o guesses.csv -q",
        ),
        silent=1,
    )
    yield Case(
        "release-best-bursts",
        (f"{RELEASE} --budget 6 --horizon 50 {SEED}", f"{AUDIT} --against live.csv"),
    )
    size = "--steps 6 --streams 3"
    yield Case(
        "plan-far-sighted",
        (f"plan -m levels.model --epsilon 0.5 {size}",),
        unseen=("levels.2343d44dca.policy",),
    )
    yield Case(
        "refused-far-sighted",
        (
            f"{RELEASE} --budget 6 --horizon 50 --method far-sighted",
            f"{RELEASE} --epsilon 1 --batch 2 --method far-sighted",
            f"{RELEASE} --epsilon 1 --method step-wise --thrift 0.1",
            f"{RELEASE} --epsilon 1 --thrift -1",
            "release live.csv -m clicks.model --epsilon 1 --method far-sighted -o private.csv",
            "plan -m city.model --budget 6 --horizon 50 --thrift 0.1",
            "plan -m city.model --epsilon 1 --method calibrated",
        ),
    )


def blocks() -> list[tuple[str, str]]:
    """The blocks of code of the guides: language, text."""
    text = "".join((GUIDES / f"{page}.md").read_text(encoding="utf-8") for page in PAGES)
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def readme_blocks() -> Iterator[tuple[Step, ...]]:
    """The commands of the guides, block by block; those that draw coins get a seed."""
    for kind, block in blocks():
        if kind:
            continue
        lines = block.replace("\\\n", " ").splitlines()
        steps = [re.sub(r"\s+#.*", "", line.removeprefix("$ ")) for line in lines]
        commands = [" ".join(step.split()[1:]) for step in steps if step.startswith("sfumato ")]
        if commands and not commands[0].startswith("serve"):  # it never ends: test_readme_service
            yield tuple(_runnable(step, place) for place, step in enumerate(commands))


def _runnable(step: Step, place: int) -> Step:
    """A command of a guide for the tables that are here, with a seed if it draws coins."""
    if step.startswith("privatize ") and place:
        step = step.replace("-o private.csv", "-o other.csv")  # the command before wrote the first
    if step.startswith("temporal release "):
        step = step.replace("counts.csv", "moments.csv")
        step = step.replace("town.backward", "back").replace("town.forward", "forth")
    return f"{step} {SEED}" if step.startswith((*DRAWN, "temporal release ")) else step


def _readme() -> Iterator[Case]:
    fitted = "fit history.csv --stream user --value place -o city.model"
    for steps in readme_blocks():
        words = list(itertools.takewhile(str.isalpha, steps[0].split()))
        words += ["per-period"] if "--per" in steps[0].split() else []
        yield Case(f"readme-{'-'.join(words)}", (fitted, *steps), silent=1, slow=True)


SLOW = (
    *("disclosure-best", "publish-equation", "publish-domain", "release-grid-euclidean"),
    *("release-ldp", "release-context-free", "privatize-compare", "plan-grid"),
)
"""Cases of about a second each, of which a quick run has others that are like them."""
CASES: tuple[Case, ...] = tuple(
    replace(case, slow=True) if case.name in SLOW else case
    for some in (
        *(
            _help,
            _fit,
            _release,
            _periodic,
            _release_otherwise,
            _audit,
            _recover,
            _clusters,
            _learn,
            _drift,
            _attack,
            _plan,
            _design,
            _privatize,
        ),
        *(_columns, _series, _temporal, _refusals, _push, _long, _defaults, _readme),
    )
    for case in (some() if some in (_defaults, _readme) else map(_pinned, some()))
)
assert len({case.name for case in CASES}) == len(CASES)
