"""`kill -9` of driver and executors within micro-batches: nothing is lost, nothing drawn twice."""

import hmac
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.store.codec import to_bytes
from sfumato.stream.release_spec import ReleaseSpec
from tests.engines.shards import KEY, Answer, Asked, Oracle, letter_policy, letters

pytestmark = pytest.mark.engines

ROOT = Path(__file__).parents[2]
FILES = 5
START = 1_700_000_000


def folder_with(folder: Path, seed: int) -> list[list[Asked]]:
    """Files of events, one micro-batch each, with events that come again; what is in them."""
    chance = random.Random(seed)
    (folder / "letters.model").write_bytes(to_bytes(letters()))
    (folder / "letters.policy").write_bytes(to_bytes(letter_policy()))
    (folder / "in").mkdir()
    batches: list[list[Asked]] = []
    for turn in range(FILES):
        events = [
            Asked(f"u{chance.randrange(12)}", f"{turn}-{row}", START + 20 * turn + row % 20, "")
            for row in range(60)
        ]
        events = [event._replace(value=chance.choice("abc")) for event in events]
        if batches:
            # Some come again at once, some from before the watermark, some with another value.
            events += chance.sample(batches[-1], 5)
            events += [one._replace(value="a") for one in chance.sample(batches[0], 3)]
            # These are new and not too old, but their streams have gone on since.
            back = START + 20 * turn - 8
            events += [Asked(f"u{row}", f"{turn}-back-{row}", back + row, "b") for row in range(4)]
        chance.shuffle(events)
        rows = [
            {"user": one.stream, "id": one.id, "time": _text(one.time), "cell": one.value}
            for one in events
        ]
        path = folder / "in" / f"{turn}.json"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        # Files are taken in the order of their times.
        os.utime(path, (START + turn, START + turn))
        batches.append(events)
    return batches


def _text(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def key_of(folder: Path) -> bytes:
    """What the coins of a checkpoint are drawn with: its query has an id, and so its own key."""
    query = json.loads((folder / "checkpoint" / "metadata").read_text())["id"]
    return hmac.digest(KEY, f"ledger {query}".encode(), "sha256")


def due(
    batches: list[list[Asked]], key: bytes, **rules: Any
) -> tuple[dict[tuple[str, str], list[Any]], dict[str, Any]]:
    """What an uninterrupted run by the plan alone lets out of each event, and what it spends."""
    policy = letter_policy()
    spec = ReleaseSpec(**(rules or {"epsilon": 0.5}), policy=policy.fingerprint)
    seconds = None if spec.per is None else int(spec.per)
    oracle = Oracle(spec.instant(letters(), policy), key, seconds=seconds)
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    # The engine has a watermark after each micro-batch, of the latest time in it.
    watermark, latest = 0, 0
    for events in batches:
        answers = oracle.answers(events, watermark)
        for event in events:
            found[event.stream, event.id].append(answers[event.stream, event.id])
        latest = max(latest, *(event.time for event in events))
        watermark = max(watermark, latest - 30)
    return found, oracle.spent


Trouble = Callable[[int], None]
"""Told the process of a driver, does something to it or to what it started."""


def run(
    folder: Path, master: str, sink: str, kill_after: float | None, trouble: Trouble | None = None
) -> bool:
    """Run the driver; whether it came to its end."""
    paths = f"{ROOT / 'src'}:{ROOT}"
    command = [sys.executable, "-W", "ignore", "-m", "tests.engines.stream_driver"]
    with (
        (folder / "driver.log").open("a") as log,
        subprocess.Popen(
            [*command, str(folder), master, sink],
            env={**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            cwd=ROOT,
        ) as driver,
    ):
        assert driver.stdout is not None
        try:
            if kill_after is not None and driver.stdout.readline() == "begun\n":
                _wait_for(folder, kill_after)
                os.killpg(driver.pid, signal.SIGKILL)
            if trouble is not None:
                trouble(driver.pid)
            told = driver.stdout.read()
        finally:
            _end(driver)
    return "ended" in told


def _wait_for(folder: Path, batches: float) -> None:
    """Wait until so many micro-batches were begun, and a part of the next."""
    log = folder / "checkpoint" / "offsets"
    whole, part = int(batches), batches % 1
    for _ in range(6000):
        begun = [name for name in os.listdir(log) if name.isdigit()] if log.exists() else []
        if len(begun) > whole:
            time.sleep(part)
            return
        time.sleep(0.02)


def _end(driver: "subprocess.Popen[str]") -> None:
    """End what the driver started; executors are of its group, and the group outlives it."""
    try:
        os.killpg(driver.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def seen(folder: Path, sink: str) -> list[dict[str, Any]]:
    """The rows that a sink has; of files those that its log names."""
    if sink == "rows":
        lines = (folder / "seen.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]
    entries: dict[str, str] = {}
    for log in sorted((folder / "out" / "_spark_metadata").iterdir()):
        if not log.name.startswith("."):
            for line in log.read_text().splitlines()[1:]:
                entry = json.loads(line)
                entries[entry["path"].rpartition("/")[2]] = entry["action"]
    rows = []
    for name in entries:
        rows += [json.loads(line) for line in (folder / "out" / name).read_text().splitlines()]
    return rows


def answer_of(row: dict[str, Any]) -> Any:
    """A row as the oracle tells it."""
    if row["outcome"] == "refused":
        return row["reason"]
    parts = (row["sequence"], row["outcome"], row.get("released"), row["sip"], row["ldp"])
    return Answer(*parts)


def check(folder: Path, sink: str, batches: list[list[Asked]]) -> None:
    """Every event has its one answer; every spend is that of an uninterrupted run."""
    answers, spent = due(batches, key_of(folder))
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in seen(folder, sink):
        found[row["user"], row["event"]].append(answer_of(row))
    if sink == "files":
        # Exactly once: as many rows as events, those that came again included.
        assert {name: len(told) for name, told in found.items()} == {
            name: len(told) for name, told in answers.items()
        }
        for name, told in answers.items():
            # Killed between the log of the files and its checkpoint, the engine leaves the whole
            # micro-batch out, its latest time included: the watermark waits for the next one, and
            # an event that came again may still be known. It has the answer that it had.
            early = [one for one in found[name] if one not in told]
            assert not early, (name, found[name], told)
            assert set(told) - set(found[name]) <= {"late"}
    else:
        assert {name: set(told) for name, told in found.items()} == {
            name: set(told) for name, told in answers.items()
        }
    drawn = {one for told in found.values() for one in told if isinstance(one, Answer)}
    assert drawn
    for stream, (sip, ldp) in spent.items():
        own = {
            one
            for (user, _), told in found.items()
            if user == stream
            for one in told
            if isinstance(one, Answer)
        }
        assert sorted(one.sequence for one in own) == list(range(len(own)))
        assert math.isclose(math.fsum(one.sip for one in own), sip, rel_tol=1e-12)
        assert math.isclose(math.fsum(one.ldp for one in own), ldp, rel_tol=1e-12)


def killed_again_and_again(folder: Path, master: str, sink: str, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    batches = folder_with(folder, seed)
    ended = 0
    for turn in range(kills):
        # Later kills come later: each round has a micro-batch that was begun before.
        after = min(turn, FILES - 1) + chance.random()
        ended += run(folder, master, sink, after)
    assert ended < kills  # some of them hit
    assert run(folder, master, sink, None)
    check(folder, sink, batches)


@pytest.mark.parametrize(
    ("master", "sink"), [("local[2]", "files"), ("local-cluster[2,1,1024]", "rows")]
)
def test_a_killed_query_goes_on_as_if_nothing_had_been(
    tmp_path: Path, master: str, sink: str
) -> None:
    killed_again_and_again(tmp_path, master, sink, kills=2, seed=3)


def test_a_kill_between_the_log_of_files_and_the_checkpoint_draws_nothing_anew(
    tmp_path: Path,
) -> None:
    batches = folder_with(tmp_path, 3)
    later = [tmp_path / "in" / f"{turn}.json" for turn in range(2, FILES)]
    for path in later:
        path.rename(tmp_path / path.name)
    assert run(tmp_path, "local[2]", "files", None)
    for name in ("1", ".1.crc"):  # as if it had been killed before it wrote them
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    for path in later:
        (tmp_path / path.name).rename(path)
    assert run(tmp_path, "local[2]", "files", None)
    check(tmp_path, "files", batches)


def _executors(driver: int) -> list[int]:
    """The processes of executors that a driver has started."""
    parents: dict[int, int] = {}
    words: dict[int, bytes] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                told = Path(f"/proc/{entry}/stat").read_text()
                words[int(entry)] = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry)] = int(told.rpartition(")")[2].split()[1])
    mine = {driver}
    while found := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= found
    name = b"CoarseGrainedExecutorBackend"
    return [pid for pid in sorted(mine) if name in words[pid]]


def test_executors_that_die_under_a_living_driver_change_nothing(tmp_path: Path) -> None:
    sink = "files"
    batches = folder_with(tmp_path, seed=7)
    killed: list[int] = []

    def kill(driver: int) -> None:
        # Within the second micro-batch, and again within the fourth: another one took its place.
        for turn in (1.3, 3.3):
            _wait_for(tmp_path, turn)
            own = _executors(driver)
            if own:
                os.kill(own[0], signal.SIGKILL)
                killed.append(own[0])

    assert run(tmp_path, "local-cluster[2,1,1024]", sink, None, trouble=kill)
    assert len(set(killed)) == 2
    check(tmp_path, sink, batches)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sink", ["files", "rows"])
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
def test_twenty_killed_queries_go_on_as_if_nothing_had_been(
    tmp_path: Path, master: str, sink: str, seed: int
) -> None:
    killed_again_and_again(tmp_path, master, sink, kills=4, seed=seed)
