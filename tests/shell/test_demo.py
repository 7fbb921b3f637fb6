import importlib.metadata
import json
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.shell.running import PATIENCE, done, litter

ROOT = Path(__file__).parents[2]


def test_the_demo_tells_the_whole_story_without_a_network(tmp_path: Path) -> None:
    home = tmp_path / "town"
    summary = done("demo", "-o", home, "--json").document
    assert summary["passed"]
    assert summary["planned_loss"] < summary["calibrated_loss"]
    assert summary["published_true"] > summary["published_claimed"]
    assert summary["largest_sip"] <= 48
    assert summary["recovered_loss"] < summary["mean_loss"]
    assert summary["counts_off"]["recovered"] < summary["counts_off"]["released"]
    assert {path.name for path in home.iterdir()} == {
        *("history.csv", "live.csv", "town.model"),
        *("town.ledger", "town.ledger.head", "town.ledger.key"),
        *("private.csv", "private.csv.plan.json", "report.html"),
        *("tracks.png", "counts.png", "loss.png", "leakage.png", "published.png"),
    }
    assert litter(home) == []
    for figure in summary["figures"]:
        assert Path(figure).read_bytes().startswith(b"\x89PNG\r\n")
    page = (home / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') == 5
    assert not re.search(r"https?://|<script|<link|@import|url\(", page)
    assert len(summary["story"]) == page.count("<li>")
    audit = ("-m", home / "town.model", "--ledger", home / "town.ledger")
    again = done("audit", home / "private.csv", *audit, "--against", home / "live.csv", "--json")
    assert again.document["passed"]
    assert again.document["mean_loss"] == pytest.approx(summary["mean_loss"])


LISTING = """
import json, sys
from sfumato.cli import main
try:
    main()
finally:
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    with open("modules.json", "w") as file:
        json.dump(files, file)
"""


def closure(requirements: list[str]) -> set[str]:
    """Names of all distributions that some requirements bring along."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        marker = requirement.marker
        if name in found or (marker is not None and not marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += map(Requirement, importlib.metadata.requires(name) or [])
    return found


def borrowed(modules: dict[str, str | None], library: Path) -> set[str]:
    """Distributions of the outer environment that a program took modules from."""
    owners = importlib.metadata.packages_distributions()
    tops = {
        name.partition(".")[0]
        for name, file in modules.items()
        if file is not None and Path(file).is_relative_to(library)
    }
    return {re.sub(r"[-_.]+", "-", owner).lower() for top in tops for owner in owners.get(top, [])}


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment_runs_the_demo(tmp_path: Path) -> None:
    def run(*arguments: object) -> None:
        subprocess.run([*map(str, arguments)], check=True, cwd=tmp_path, timeout=5 * PATIENCE)

    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path)
    run(*pip, *build, ROOT)
    (wheel,) = tmp_path.glob("sfumato-*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    inner = tmp_path / "venv" / "bin" / "python"
    run(*pip, "--python", inner, "install", "--quiet", "--no-deps", "--no-index", wheel)
    # Dependencies are lent from here, so that no network is needed; which of them were used is
    # checked against what the wheel asks for.
    library = Path(sysconfig.get_path("purelib"))
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "lent.pth").write_text(f"{library}\n")
    run(inner, "-c", LISTING, "demo", "--output", "town", "--quiet")
    assert (tmp_path / "town" / "report.html").is_file()
    run(tmp_path / "venv" / "bin" / "sfumato", "--help")
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert Path(modules["sfumato"]).is_relative_to(site)
    asked = importlib.metadata.PathDistribution.at(next(site.glob("sfumato-*.dist-info")))
    assert borrowed(modules, library) <= closure(asked.requires or [])
