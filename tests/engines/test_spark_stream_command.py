"""`sfumato spark stream` in a process of its own: Ctrl-C ends it, the same command goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engines.conftest import SOURCES
from tests.engines.shards import KEY
from tests.engines.test_stream_kill import check, folder_with, key_of
from tests.shell.running import done

pytestmark = pytest.mark.engines

INTERRUPTED = 130


def command(folder: Path, *more: str, key: str = "key") -> list[str]:
    program = "import sys; from sfumato.cli import main; sys.exit(main())"
    words = [sys.executable, "-W", "ignore", "-c", program, "spark", "stream", str(folder / "in")]
    words += ["-m", str(folder / "letters.model"), "--policy", str(folder / "letters.policy")]
    words += ["--epsilon", "0.5", "--key-file", str(folder / key), "--shards", "4"]
    words += ["--watermark", "30 seconds", "--source-option", "maxFilesPerTrigger=1"]
    words += ["--checkpoint", str(folder / "checkpoint"), "-o", str(folder / "out")]
    words += ["--sink-format", "json", "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    return [*words, "--conf", "spark.sql.shuffle.partitions=3", *more]


def process(folder: Path, *more: str, key: str = "key") -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(folder, *more, key=key),
        env={**os.environ, "PYTHONPATH": SOURCES, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_an_interrupted_command_goes_on_where_it_was(tmp_path: Path) -> None:
    batches = folder_with(tmp_path, seed=5)
    for name, secret in (("key", KEY), ("other", KEY[::-1])):
        (tmp_path / name).write_bytes(secret)
        (tmp_path / name).chmod(0o600)
    with process(tmp_path) as begun:
        while not (tmp_path / "checkpoint" / "commits" / "0").exists() and begun.poll() is None:
            time.sleep(0.05)
        os.killpg(begun.pid, signal.SIGINT)
        _, told = begun.communicate()
    assert begun.returncode == INTERRUPTED, told
    assert "go on with the same command" in told
    with process(tmp_path, "--once", key="other") as refused:
        _, told = refused.communicate()
    assert refused.returncode == 2
    assert "the checkpoint belongs to a release with another model, policy, rules, key" in told
    with process(tmp_path, "--once", "--json") as ended:
        out, told = ended.communicate()
    assert ended.returncode == 0, told
    assert '"events"' in out
    assert (tmp_path / "out.plan.json").exists()
    check(tmp_path, "files", batches)
    rules = (tmp_path / "out.plan.json").read_bytes()
    for others, rule in (
        (("--late", "accept"), "be another folder, or the rules those of"),
        (("--checkpoint", str(tmp_path / "anew")), "know every micro-batch that"),
    ):
        with process(tmp_path, "--once", *others) as refused:
            _, told = refused.communicate()
        assert refused.returncode == 2 and rule in told, told
        assert (tmp_path / "out.plan.json").read_bytes() == rules
    check(tmp_path, "files", batches)
    # What an auditor is given: the key of this checkpoint alone.
    own, words = tmp_path / "own.key", ("--checkpoint", tmp_path / "checkpoint", "-o")
    done("key", "derive", tmp_path / "key", *words, own)
    assert own.read_bytes() == key_of(tmp_path)
