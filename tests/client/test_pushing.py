"""`sfumato push`: the same table gives the same file, whatever happened in between."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet
import pytest

from sfumato.cli.app import called
from sfumato.client import LiveEvent, Reply, ServiceUnavailable
from sfumato.client.pushing import PushSpec, push_table
from sfumato.stream.release_document import read_spec
from sfumato.tables.input_groups import EventColumns
from sfumato.tables.readers import Table
from sfumato.tables.writers import Output
from tests.client.cutting_wire import cutting_wire
from tests.client.fake_service import KEY, FakeService

ROWS = 60


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_ACCESS_KEY", KEY)
    file = tmp_path / "live.csv"
    rows = [f"u{place % 4},{place},v{place}" for place in range(ROWS)]
    file.write_text("\n".join(["user,when,value", *rows]) + "\n")
    return file


def push(live: Path, url: str, *more: str, output: str = "private.csv") -> tuple[int, Path]:
    made = live.parent / output
    words = ["push", str(live), "--to", url, "--stream", "user", "-q", "-o", str(made), *more]
    return called(words), made


@pytest.mark.parametrize("way", [[], ["--socket"]])
def test_a_table_comes_back_with_the_columns_of_release(
    live: Path, url: str, way: list[str]
) -> None:
    code, made = push(live, url, "--time", "when", *way)
    lines = made.read_text().splitlines()
    assert code == 0 and lines[0] == "user,sequence,released,outcome,sip,ldp"
    assert lines[1:6] == [
        "u0,0,r0,released,0.25,0.5",
        "u1,0,r0,released,0.25,0.5",
        "u2,0,r0,released,0.25,0.5",
        "u3,0,r0,released,0.25,0.5",
        "u0,1,r1,released,0.25,0.5",
    ]
    assert len(lines) == ROWS + 1


@pytest.mark.parametrize(
    "identity", [["--time", "when"], ["--event", "value"], ["--source", "monday"]]
)
def test_a_push_that_is_run_again_gives_the_same_file(
    live: Path, url: str, service: FakeService, identity: list[str]
) -> None:
    _, first = push(live, url, *identity)
    before = first.read_bytes()
    code, again = push(live, url, "--socket", *identity, output="again.csv")
    assert code == 0 and again.read_bytes() == before
    assert set(service.drawn.values()) == {1} and len(service.drawn) == ROWS


def test_rows_of_another_input_are_other_events(live: Path, url: str, service: FakeService) -> None:
    push(live, url, "--source", "monday")
    push(live, url, "--source", "tuesday")
    assert len(service.drawn) == 2 * ROWS


def test_breaks_on_the_way_change_nothing(live: Path, service: FakeService, port: int) -> None:
    with cutting_wire(port) as wire:
        wire.cuts = 3
        code, _ = push(live, wire.url, "--time", "when")
        assert code == 0 and wire.swallowed == 3
    assert set(service.drawn.values()) == {1} and len(service.drawn) == ROWS


def test_batches_leave_in_the_order_of_the_input_and_the_rest_at_the_end(
    live: Path, url: str, service: FakeService
) -> None:
    service.batch = 4  # 15 rows a stream
    code, made = push(live, url, "--event", "value", "--time", "when")
    lines = made.read_text().splitlines()
    assert code == 0 and lines[0].startswith("event,user,sequence")
    assert [line.split(",")[0] for line in lines[1:]] == [f"v{place}" for place in range(ROWS)]


def test_a_refused_row_is_named_and_its_value_is_not(
    live: Path, url: str, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    text = live.read_text().replace("v17", "impossible")
    live.write_text(text)
    code, made = push(live, url, "--time", "when")
    told = capsys.readouterr().err
    assert code == 2 and not made.exists()
    assert "row 18" in told and "impossible" not in told
    code, made = push(live, url, "--time", "when", "--refused", "drop")
    assert code == 0 and len(made.read_text().splitlines()) == ROWS
    assert set(service.drawn.values()) == {1}


def test_missing_values_are_refused_left_out_or_passed_over(
    live: Path, url: str, service: FakeService
) -> None:
    live.write_text(live.read_text().replace("v17", "").replace("v18", "nan"))
    assert push(live, url, "--time", "when")[0] == 2
    code, made = push(live, url, "--time", "when", "--missing", "drop")
    assert code == 0 and len(made.read_text().splitlines()) == ROWS - 1
    code, made = push(live, url, "--source", "s", "--missing", "skip", output="skipped.csv")
    assert code == 0 and service.values["s:18"] is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--source must be given"),
        (["--source", "s", "--missing", "symbol"], "--missing must be refuse, drop or skip"),
        (["--source", "s", "--refused", "keep"], "--refused must be stop or drop"),
        (["--source", "s", "--access-key-file", "open.key"], "owner alone"),
    ],
)
def test_what_is_wrong_with_a_call_is_said_before_anything_is_sent(
    live: Path,
    url: str,
    service: FakeService,
    words: list[str],
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(live.parent)
    Path("open.key").write_text(KEY)
    Path("open.key").chmod(0o644)
    code, made = push(live, url, *words)
    assert code == 2 and told in capsys.readouterr().err
    assert not service.seen and not made.exists()


def test_a_key_file_of_its_owner_is_read(
    live: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SFUMATO_ACCESS_KEY")
    assert push(live, url, "--source", "s")[0] == 2
    assert "SFUMATO_ACCESS_KEY" in capsys.readouterr().err
    key = live.parent / "own.key"
    key.write_text(KEY + "\n")
    key.chmod(0o600)
    assert push(live, url, "--source", "s", "--access-key-file", str(key))[0] == 0


def test_other_formats_and_a_report_for_machines(
    live: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    push(live, url, "--source", "s")
    made = live.parent / "private.parquet"
    words = ["push", str(live), "--to", url, "--stream", "user", "--source", "s", "--json"]
    assert called([*words, "-o", str(made)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["repeated"], report["streams"]) == (ROWS, ROWS, 4)
    table = pyarrow.parquet.read_table(made)
    assert table.num_rows == ROWS and str(table.schema.field("sip").type) == "double"


def test_rows_that_are_all_left_out_give_a_table_without_rows(live: Path, url: str) -> None:
    live.write_text("user,when,value\nu1,1,\n")
    code, made = push(live, url, "--time", "when", "--missing", "drop")
    assert code == 0
    assert made.read_text() == "user,sequence,released,outcome,sip,ldp\n"


def test_an_interrupted_push_keeps_what_was_answered_and_goes_on(
    live: Path, url: str, service: FakeService, tmp_path: Path
) -> None:
    made, words = tmp_path / "private.csv", ["--to", url, "--stream", "user", "--time", "when"]
    program = "import sys; from sfumato.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "push", "-", *words, "-o", str(made)]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdin is not None and running.stderr is not None
    head = live.read_bytes().splitlines(keepends=True)[:31]
    running.stdin.write(b"".join(head))
    running.stdin.flush()
    while len(service.drawn) < 30:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    told = running.stderr.read().decode()
    assert running.wait() == 130 and "interrupted" in told
    running.stdin.close()
    running.stderr.close()
    assert not made.exists() and f"in {made}.part" in told
    part = (tmp_path / "private.csv.part").read_text().splitlines()
    code, whole = push(live, url, "--time", "when")
    assert code == 0 and whole.read_text().splitlines()[: len(part)] == part
    assert len(part) > 1 and set(service.drawn.values()) == {1}
    assert not (tmp_path / "private.csv.part").exists()


def test_a_longer_part_is_never_replaced_by_a_shorter_one(tmp_path: Path) -> None:
    target = tmp_path / "private.csv"
    part = Path(f"{target}.part")
    for rows, kept in ((5, 5), (2, 5), (7, 7)):
        with Output(Table.at(str(target)), {"stream": str, "sip": float}) as output:
            output.write([("u1", 0.5)] * rows)
            output.keep_as_part(str(part))
        assert not target.exists() and len(part.read_text().splitlines()) == kept + 1
    part.write_text("stream,sip\n" + "another,0.25\n" * 9)
    with Output(Table.at(str(target)), {"stream": str, "sip": float}) as output:
        output.write([("u1", 0.5)])
        output.keep_as_part(str(part))
    assert part.read_text() == "stream,sip\nu1,0.5\n"


def test_rows_under_other_ids_are_remarked(
    live: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push(live, url, "--time", "when")[0] == 0
    assert "had answers before" not in capsys.readouterr().err
    assert push(live, url, "--time", "when")[0] == 0
    assert "had answers before" not in capsys.readouterr().err
    assert push(live, url, "--source", "monday")[0] == 0
    assert "4 streams had answers before this push" in capsys.readouterr().err


def test_the_rules_stand_beside_the_output_sealed_to_it(live: Path, url: str) -> None:
    _, made = push(live, url, "--event", "value")
    spec = read_spec(f"{made}.plan.json")
    assert spec.event == "value" and spec.sealed is not None
    assert (spec.sealed.rows, spec.sealed.streams) == (ROWS, 4)
    assert spec.sealed.sha256 == hashlib.sha256(made.read_bytes()).hexdigest()


def test_ctrl_c_is_heard_while_the_service_is_away(live: Path) -> None:
    def ask(events: list[LiveEvent]) -> Iterable[Reply]:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        raise ServiceUnavailable("never reached")

    spec = PushSpec(stream="user", events=EventColumns(time="when"))
    output = Table.at(str(live.parent / "private.csv"))
    report = push_table(Table.at(str(live)), output, ask, lambda stream: None, spec)
    assert report.interrupted and report.rows == 0 and report.waiting == 16
