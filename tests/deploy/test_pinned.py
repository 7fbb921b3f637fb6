"""Hashes and the bill of materials name all that an installation consists of, as pinned."""

import json
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from tests.deploy.conftest import ROOT, run, surroundings
from tests.deploy.test_release_files import packaging

EXTRAS = "client,mqtt,postgres,service"
"""Those of `make hashes` and `make sbom`."""


def plain(name: str) -> str:
    """The one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line and not line.startswith("#")]
    return {plain(name): version.split(";")[0].strip() for name, version in pairs}


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(one for name in EXTRAS.split(",") for one in extras[name])]
    return {plain(re.split(r"[^\w.-]", line)[0]) for line in lines}


@pytest.mark.slow
def test_every_dependency_of_an_installation_has_its_pinned_version_and_a_hash(
    tmp_path: Path,
) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    report, hashes = tmp_path / "report.json", tmp_path / "hashes.txt"
    asked = ("--dry-run", "--ignore-installed", "--report", report)
    run(*pip, *asked, "--constraint", ROOT / "constraints.txt", f"{ROOT}[{EXTRAS}]", cwd=tmp_path)
    lines = list(packaging("pinned_hashes").requirements(json.loads(report.read_text())))
    hashes.write_text("\n".join(lines))
    found = dict(re.findall(r"^(\S+)==(\S+) --hash=sha256:[0-9a-f]{64}$", "\n".join(lines), re.M))
    assert len(found) == len(lines) - 1
    named = {plain(name): version for name, version in found.items()}
    assert declared() <= named.keys()
    assert {name: pinned().get(name) for name in named} == named
    run(*pip, "--dry-run", "--require-hashes", "--no-deps", "-r", hashes, cwd=tmp_path)


@pytest.mark.slow
def test_the_bill_of_materials_names_all_that_is_installed(
    with_extras: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "tools", with_pip=True)
    python, told = tmp_path / "tools" / "bin" / "python", tmp_path / "sfumato.cdx.json"
    pin = ("--constraint", ROOT / "constraints.txt")
    run(python, "-m", "pip", "install", "--quiet", *pin, "cyclonedx-bom", cwd=tmp_path)
    asked = ("--pyproject", ROOT / "pyproject.toml", "--output-reproducible", "--output-file", told)
    program = tmp_path / "tools" / "bin" / "cyclonedx-py"
    run(program, "environment", *asked, with_extras / "venv", cwd=tmp_path, PYTHONPATH="")
    parts = {
        plain(one["name"]): one["version"] for one in json.loads(told.read_text())["components"]
    }
    listed = subprocess.run(
        [with_extras / "venv" / "bin" / "python", "-m", "pip", "list", "--format", "json"],
        env=surroundings(PYTHONPATH=""),
        capture_output=True,
        text=True,
        check=True,
    )
    there = {plain(one["name"]): one["version"] for one in json.loads(listed.stdout)}
    del there["sfumato"]
    assert declared() <= parts.keys()
    assert {name: parts.get(name) for name in there} == there
