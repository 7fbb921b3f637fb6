"""Whatever a command writes is put in words: what it promises, with a unit, and what to type next.

Commands are run in one folder; everything that lies there afterwards, but for tables and pictures
that no rule lies beside, goes through `explain`. A command that is not run here stands in `NONE`
with what it writes instead, so that a new one cannot be forgotten.
"""

import math
import random
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import typer

import sfumato as sf
from sfumato.cli.app import app
from sfumato.explanations.artefacts import explain
from sfumato.store.catalogue import Catalogue, record
from sfumato.store.catalogue_contents import ReleaseContent
from sfumato.store.folder_home import FolderHome
from tests.shell.golden_cases import tables as golden_tables
from tests.shell.running import done
from tests.shell.tables import csv_bytes, walk
from tests.shell.test_learning_release import RULES as LEARNING
from tests.shell.test_learning_release import table as sticky_bits

PROGRAM = typer.main.get_command(app)
UNIT = re.compile(r"\d nats?\b|amounts? in nats|, in nats|with (?:a )?probability|factor of")
NO_PROMISE = "It promises nothing by itself"

RELEASE = "--epsilon 0.3 --time when --keep when --ledger town.ledger -o private.csv"
STEPS = (
    "fit history.csv --stream person --value place -o town.model",
    "fit history.csv --stream person --value place --order 2 -o plain.model",
    "fit kinds.csv --stream person --value place --clusters 2 -o kinds.model",
    "fit history.csv --stream person --value place --period 4 -o phases.model",
    "fit history.csv --stream person --value place --private 1 --values VALUES -o guarded.model",
    "fit --uniform --values a,b --stream user -o start.model",
    "compile --model town.model --epsilon 0.3 --method step-wise -o town.policy",
    f"release live.csv --model town.model --policy town.policy --method step-wise {RELEASE}",
    "release live.csv --model town.model --budget 3 --horizon 40 -o total.csv",
    "release live.csv --model town.model --epsilon 0.2 --batch 2 -o batch.jsonl",
    "release live.csv --model town.model --epsilon 1 --method step-wise --seed 3 -o simulated.csv",
    "release bits.csv --model start.model --seed 6 --time when --ledger learning.ledger "
    f"{' '.join(map(str, LEARNING))} -o learning.csv",
    "release bits.csv --model start.model --epsilon 1 --method randomized-response -o first.csv",
    "learn first.csv --model start.model --order 1 --plausible near.set -o learnt.model",
    "audit private.csv --model town.model --policy town.policy --report audit.json "
    "--report audit.html --report audit.md",
    "privatize people.csv -c way --epsilon 1 -o way.csv",
    "verify way.csv.certificate.json --report verify.json",
    "publish --table people.csv --columns height,weight --accuracy 2 --sigma 8 --noise gaussian "
    "--coupling gaussian -o published.csv",
    "realtime counts.csv --value n --sensitivity 1 --epsilon 1 --ledger counts.ledger "
    "-o counted.csv",
    "realtime counts.csv --value n --sensitivity 1 --epsilon 1 --method laplace --unit event "
    "--ledger event.ledger -o event.csv",
    "realtime counts.csv --value n --sensitivity 1 --epsilon 1 --state counts.state -o begun.csv",
    "temporal fit history.csv --stream person --value place -o moves",
    "temporal release moments.csv --stream town --value home --alpha 2 --steps 30 "
    "--backward moves.backward.csv --forward moves.forward.csv --ledger moves.ledger -o moved.csv",
    "temporal release moments.csv --stream town --value home --alpha 2 "
    "--backward moves.backward.csv --seed 4 -o endless.csv",
    "key new year.key",
    "store check home --write-anchor anchor.json",
    "store backup home saved",
    "ledger backup town.ledger copy.ledger",
)
NONE = {
    **dict.fromkeys(("plan", "design", "implied", "disclosure", "compare"), "words alone"),
    **dict.fromkeys(("drift", "explain", "doctor", "start", "warm"), "words alone"),
    **dict.fromkeys(("verify-report", "temporal leakage", "temporal allocate"), "words alone"),
    **dict.fromkeys(("temporal audit", "ledger check", "spark audit"), "words alone"),
    **dict.fromkeys(("key commit", "key check"), "words alone"),
    **dict.fromkeys(("access new", "access list", "access revoke", "access rotate"), "in a home"),
    **dict.fromkeys(("store migrate", "store restore", "store close", "serve"), "a home"),
    **dict.fromkeys(("key add", "key derive"), "a key, as `key new` does"),
    **dict.fromkeys(("recover", "attack", "ledger export", "store export"), "a plain table"),
    **dict.fromkeys(("spark recover", "push", "bridge mqtt"), "a plain table, or answers"),
    **dict.fromkeys(("spark release", "spark stream"), "a table with its plan, as `release` does"),
    **dict.fromkeys(("spark fit", "spark learn"), "a model, as `fit` and `learn` do"),
    **dict.fromkeys(("sample", "demo", "study"), "tables and pages"),
    "temporal plot": "a picture",
}
INPUTS = {
    *("history.csv", "live.csv", "bits.csv", "people.csv", "counts.csv", "moments.csv"),
    "kinds.csv",
}


def commands(group: Any, before: str = "") -> Iterator[str]:
    """The names of all commands."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def inputs(folder: Path) -> None:
    """Tables that the commands read."""
    rng = random.Random(3)
    rows = [(who, place, row) for row, (who, place) in enumerate(walk(1, rows=400))]
    live = [(who, place, row) for row, (who, place) in enumerate(walk(7, rows=60))]
    body = [(rng.choice(["bus", "car", "foot"]), *_body(rng)) for _ in range(60)]
    counts = [(round(100 + 20 * math.sin(row / 5), 1),) for row in range(40)]
    moments = [("a", round(100 + 60 * math.sin(row / 3))) for row in range(30)]
    tables: dict[str, tuple[list[str], Sequence[Sequence[object]]]] = {
        "history.csv": (["person", "place", "when"], rows),
        "live.csv": (["person", "place", "when"], live),
        "people.csv": (["way", "height", "weight"], body),
        "counts.csv": (["n"], counts),
        "moments.csv": (["town", "home"], moments),
    }
    for name, (columns, cells) in tables.items():
        (folder / name).write_bytes(csv_bytes(columns, cells))
    (folder / "kinds.csv").write_bytes(golden_tables()["kinds.csv"])
    (folder / "bits.csv").write_bytes(sticky_bits(range(10)))


def _body(rng: random.Random) -> tuple[float, float]:
    height = round(rng.gauss(170, 8), 1)
    return height, round(75 + 0.9 * (height - 170) + rng.gauss(0, 9), 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the commands write."""
    made = tmp_path_factory.mktemp("artefacts")
    inputs(made)
    places = ",".join(sorted({place for _, place in walk(1, rows=400)}))
    sf.save(sf.Prior([0.7, 0.3]), made / "coin.prior")
    sf.save(sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]]), made / "bare.model")
    with chdir(made), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.stream.model_versions._NARROW", 1.0)
        patch.setattr("sfumato.stream.model_versions._WALKS", 1)
        patch.setattr("sfumato.stream.model_versions._LENGTH", 4)
        with FolderHome("home") as home:
            rule = ReleaseContent("release", "{}")
            record(home.registry, Catalogue(), "ann", "release.created", "city", rule)
        done(*shlex.split("fit history.csv --stream person --value place -o city.model"))
        rule_of_home = "--epsilon 0.2 --method step-wise --ledger home/ledgers/city.ledger"
        done(*shlex.split(f"release live.csv -m city.model {rule_of_home} -o home.csv"))
        for step in STEPS:
            said = done(*shlex.split(step.replace("VALUES", places)))
            if step.startswith("key new"):
                Path("year.commitment").write_text(said.out)
    return made


def artefacts(folder: Path) -> list[Path]:
    """Everything that lies there, but for inputs; homes and backups are one thing each."""
    return sorted(path for path in folder.iterdir() if path.name not in INPUTS)


def parse(line: str) -> None:
    """Fails on a command or an option that is not there."""
    program, *words = shlex.split(line)
    assert program == "sfumato"
    group: Any = PROGRAM
    while hasattr(group, "commands"):
        group = group.commands[words.pop(0)]
    group.make_context("x", words)


def test_everything_that_commands_write_says_its_promise_and_what_is_next(folder: Path) -> None:
    found = artefacts(folder)
    assert len(found) > 60
    with chdir(folder):
        for path in found:
            told = done("explain", path.name).out.splitlines()
            text = " ".join(told)
            assert UNIT.search(text) or NO_PROMISE in text, f"{path.name}: {text}"
            label, _, command = told[-1].partition(": ")
            assert label == "next", path.name
            parse(command)
            assert "\x1b" not in text


def test_each_kind_is_called_what_it_is(folder: Path) -> None:
    kinds = {path.name: explain(path).kind for path in artefacts(folder)}
    table = "table with its {} beside it"
    assert kinds["private.csv"] == kinds["learning.csv"] == table.format("plan")
    for name in ("way.csv", "published.csv", "counted.csv", "moved.csv"):
        assert kinds[name] == table.format("certificate")
        assert kinds[f"{name}.certificate.json"] == "certificate"
    ledgers = ("town.ledger", "counts.ledger", "moves.ledger", "learning.ledger", "copy.ledger")
    assert {kinds[name] for name in ledgers} == {"ledger"}
    assert kinds["moved.csv.plan.json"] == kinds["private.csv.plan.json"] == "plan"
    assert kinds["learning.csv.versions"] == kinds["learning.ledger.versions"] == "list of versions"
    assert kinds["near.set"] == "set of plausible models"
    assert kinds["town.policy"] == "policy" and kinds["coin.prior"] == "prior"
    assert kinds["audit.json"] == kinds["verify.json"] == "report"
    assert kinds["year.commitment"] == "commitment to a key" and kinds["year.key"] == "key"
    assert kinds["home"] == kinds["saved"] == "home of a service"
    assert kinds["anchor.json"] == "anchor" and kinds["counts.state"] == "state of a series"


def test_ledgers_say_what_their_job_promised_and_go_on_with_its_audit(folder: Path) -> None:
    with chdir(folder):
        release, series, moves = (
            explain(name) for name in ("town.ledger", "counts.ledger", "moves.ledger")
        )
        certificate = " ".join(explain("counted.csv.certificate.json").lines)
        told = " ".join(series.lines)
        promised = re.search(r"(\S+ nats) \(ApproxDP\)", certificate)
        assert promised is not None and promised[1] in told and "user level" in told
        assert "2 nats (TemporalDP)" in " ".join(moves.lines)
        assert "nats (SIP)" in " ".join(release.lines)
        assert [one.next.split(" --ledger")[0] for one in (series, moves)] == [
            "sfumato audit",
            "sfumato temporal audit",
        ]
        # What is advised is not only understood: it runs.
        for one in (series, moves):
            done(*shlex.split(one.next)[1:])
        done(*shlex.split(release.next.replace("MODEL", "town.model --policy town.policy"))[1:])


def test_a_temporal_table_says_what_any_moment_tells(folder: Path) -> None:
    for name in ("moved.csv", "moved.csv.certificate.json", "moved.csv.plan.json"):
        lines = " ".join(explain(folder / name).lines)
        assert "nats (TemporalDP) of any single moment of a person" in lines
        assert "odds between any two values" in lines
    assert "A SIMULATION" in " ".join(explain(folder / "endless.csv").lines)
    assert "Streams are endless" in " ".join(explain(folder / "endless.csv.plan.json").lines)


def test_no_key_is_opened_to_be_explained(folder: Path) -> None:
    opened = []

    def watched(path: Path, *rest: Any, **more: Any) -> Any:
        opened.append(path.name)
        return open(path, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", watched)
        for name in ("year.key", "town.ledger.key"):
            assert "SECRET" in " ".join(explain(folder / name).lines)
        explain(folder / "year.commitment")
    assert opened == ["year.commitment"]


def test_no_command_is_forgotten() -> None:
    run = {" ".join(shlex.split(step)[:2]) for step in STEPS}
    run |= {name.split()[0] for name in run}
    named = set(commands(PROGRAM))
    assert named - run - set(NONE) == set()
    assert set(NONE) <= named
