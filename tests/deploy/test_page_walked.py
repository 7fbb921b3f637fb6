"""The commands of `docs/deploy.md`, run as they stand, in a fresh folder, on a service of its own.

Places of a real machine are other folders here, and `gate.example` is this machine. What needs
root, systemd or a container engine is left out, by name.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sfumato.store.codec import to_bytes
from tests.service.example_releases import sticky
from tests.service.nodes import Node, ServiceHome, town_model

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
MAIN = "import sys; from sfumato.cli import main; sys.exit(main())"
LEFT_OUT = ("make ", "python3 -m venv", "useradd", "install -d", "systemctl", "docker", "cp gate")
"""What root does, or what is not here; the wheel is built and installed by `test_wheel.py`."""
SECTIONS = {"One machine", "Making releases over HTTP", "Auditing what was answered"}
SECTIONS |= {"Closing a release", "Backup, and the head", "Rotation and upgrade"}


def blocks(section: str) -> list[str]:
    """The commands of a section."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)


class Machine:
    """A folder that stands for a machine, on which a service runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = Node(ServiceHome.made(folder))
        (folder / "bin").mkdir()
        (folder / "elsewhere").mkdir()
        (folder / "backups").mkdir()
        command = folder / "bin" / "sfumato"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(MAIN)} "$@"\n')
        command.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}

    def own(self, text: str) -> str:
        """A command of the page for this machine."""
        for there, here in (
            ("/var/lib/sfumato/home", str(self.folder / "home")),
            ("/opt/sfumato/bin/", ""),
            ("/elsewhere/", f"{self.folder / 'elsewhere'}/"),
            ("/backups/", f"{self.folder / 'backups'}/"),
            ("https://gate.example:8477", self.node.url),
            ("http://127.0.0.1:8477", self.node.url),
            ("runuser -u sfumato -- ", ""),
        ):
            text = text.replace(there, here)
        return text

    def run(self, text: str) -> str:
        """Run commands of the page; what they print."""
        done = subprocess.run(
            ["bash", "-ec", self.own(text)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    town_model(tmp_path).rename(tmp_path / "city.model")
    (tmp_path / "city2.model").write_bytes(to_bytes(sticky("abc", 0.8)))
    rows = [f"ward-3-{n % 4},{n},{'abc'[n % 3]}" for n in range(40)]
    (tmp_path / "live.csv").write_text("\n".join(["stream,when,value", *rows]) + "\n")
    [serve] = [line for line in blocks("One machine")[1].splitlines() if " serve " in line]
    words = shlex.split(made.own(serve).replace("city.model", str(tmp_path / "city.model")))
    assert words[:4] == ["sfumato", "serve", "--home", str(tmp_path / "home")]
    try:
        key = made.node.start(*words[4:])
        assert key is not None
        made.environment["SFUMATO_ACCESS_KEY"] = key
        yield made
    finally:
        made.node.kill()


def ready(machine: Machine, *names: str) -> None:
    headers = {"authorization": f"Bearer {machine.environment['SFUMATO_ACCESS_KEY']}"}
    end = time.monotonic() + 120.0
    while time.monotonic() < end:
        told = httpx.get(f"{machine.node.url}/v1/releases", headers=headers).json()["releases"]
        states = {one["name"]: one["status"] for one in told}
        if all(states.get(name) == "ready" for name in names):
            return
        time.sleep(0.05)
    raise AssertionError(f"releases of the page are not made: {states}")


@pytest.mark.slow
def test_the_page_can_be_walked(machine: Machine) -> None:
    assert shutil.which("curl") is not None
    _, _, keys, push = blocks("One machine")
    for line in keys.splitlines()[1:]:
        assert machine.run(line).startswith("sfk_")
    [first] = [line for line in keys.splitlines() if "ward-3" in line]
    (machine.folder / "ward3.key").write_text(machine.run(first))
    (machine.folder / "ward3.key").chmod(0o600)
    machine.run(push)
    assert len((machine.folder / "private.csv").read_text().splitlines()) == 41
    [http] = blocks("Making releases over HTTP")
    making, _, using = http.partition("ask $service/v1/releases ")
    assert "problem" not in machine.run(making)
    ready(machine, "city-v1", "counts", "wards")
    begin = making.partition("\n\n")[0]
    last = machine.run(f"{begin}\nask $service/v1/releases {using}").strip()
    assert '"status":"answered"' in last and '"default":true' in last
    [audit] = blocks("Auditing what was answered")
    told = machine.run(audit.splitlines()[0].replace("city-v1", "default"))
    assert "nothing wrong" in told
    [close] = blocks("Closing a release")
    machine.run(close.splitlines()[0])


@pytest.mark.slow
def test_backup_restore_and_rotation_of_the_page_can_be_walked(machine: Machine) -> None:
    _, _, _, push = blocks("One machine")
    access = machine.environment["SFUMATO_ACCESS_KEY"]
    (machine.folder / "ward3.key").write_text(access)
    (machine.folder / "ward3.key").chmod(0o600)
    machine.run(push)
    check, backup, restore = blocks("Backup, and the head")[0].splitlines()
    anchor = machine.folder / "elsewhere" / "anchor.json"
    machine.run(re.sub(r"--expect-anchor \S+", "", check))  # the first of all has none to expect
    before = json.loads(anchor.read_text())["ledgers"]
    machine.run(check)
    assert json.loads(anchor.read_text())["ledgers"] == before
    machine.run(backup)
    rotate, migrate = blocks("Rotation and upgrade")[0].splitlines()
    machine.run(rotate.replace("5d41402abc4b2a76", access.split("_")[1]))
    assert machine.node.stop() == 0
    machine.run(migrate)
    shutil.rmtree(machine.folder / "home")  # the machine is lost
    machine.run(restore)
    machine.node.start()


def test_every_section_with_commands_is_walked_or_known_to_need_more() -> None:
    text = PAGE.read_text()
    found = [part.partition("\n")[0] for part in text.split("\n## ")[1:] if "```sh" in part]
    more = {"PostgreSQL, several nodes", "Coins that can be repeated"}
    assert set(found) == SECTIONS | more
    install = blocks("One machine")[0].splitlines()
    assert [line for line in install if not line.startswith(LEFT_OUT)] == [
        '/opt/sfumato/bin/pip install "$(ls dist/sfumato-*.whl)[service,client]"',
        "/opt/sfumato/bin/sfumato warm --check",
    ]
