"""Files that people copy: they parse, and name only what the program has."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from sfumato.cli.app import called
from sfumato.service.metrics import Metrics, ReleaseFigures
from sfumato.store.live import Waiting
from sfumato.store.live_columns import ReplyColumns

DEPLOY = Path(__file__).parents[2] / "deploy"
PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def options_of(*command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    assert called([*command, "--help"]) == 0
    return set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out.replace("-\n", "-")))


def metric_names() -> set[str]:
    """Every name that a service tells, from one that has told something of each."""
    metrics = Metrics(lambda: [ReleaseFigures("r", 0, 0, 0, True, 0)])
    metrics.request("post_events", 200, 0.1)
    metrics.group("r", ReplyColumns(1, others={0: Waiting(1)}), 0.1)
    metrics.failed_group("r")
    metrics.watch_registry(lambda: 0)
    families = text_string_to_metric_families(metrics.text().decode())
    return {sample.name for family in families for sample in family.samples}


def test_every_figure_of_the_board_is_one_of_the_service() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used = set(re.findall(r"sfumato_[a-z_]+", " ".join(asked)))
    assert len(used) > 8 and used <= metric_names()
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_the_board_shows_refusals_conflicts_and_what_was_lost() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    for part in ("refused_", "sfumato_conflicting_retries_total", "sfumato_release_entries"):
        assert part in asked
    assert "sfumato_registry_entries" in asked
    taken = [tuple(panel["gridPos"][name] for name in "xy") for panel in board["panels"]]
    assert len(set(taken)) == len(taken)


def test_every_figure_of_an_alarm_is_one_of_the_service() -> None:
    named = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["rule_files"]
    [group] = [
        one for file in named for one in yaml.safe_load((DEPLOY / file).read_text())["groups"]
    ]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names) > 4
    used = set(re.findall(r"sfumato_[a-z_]+", " ".join(rule["expr"] for rule in group["rules"])))
    assert len(used) > 4 and used <= metric_names()


@pytest.mark.parametrize("file", ["compose.yaml", "sfumato.service", "Containerfile"])
def test_every_option_of_a_file_is_one_of_serve(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = options_of("serve", capsys=capsys)
    if file == "compose.yaml":
        whole = yaml.safe_load((DEPLOY / file).read_text())
        words = " ".join(whole["services"]["gate"]["command"])
    else:
        lines = (DEPLOY / file).read_text().splitlines()
        words = " ".join(line for line in lines if re.match("(ExecStart|CMD)", line))
    used = set(re.findall(r"--[a-z][a-z-]*", words))
    assert used and used <= known


def test_every_command_of_the_page_is_one_of_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = PAGE.read_text().replace("\\\n", " ")
    lines = re.findall(r"^.*?\bsfumato ((?:[a-z]+ )+)(.*)$", _shell(text), flags=re.MULTILINE)
    assert len(lines) > 8
    groups = ("access", "store", "key", "ledger")
    for words, rest in lines:
        path = words.split()
        command = path[:2] if path[0] in groups else path[:1]
        used = set(re.findall(r"--[a-z][a-z-]*", rest))
        assert used <= options_of(*command, capsys=capsys), command


def _shell(text: str) -> str:
    return "\n".join(re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL))


def test_secrets_are_files_and_no_password_stands_in_the_file(compose: Any) -> None:
    for secret in compose["secrets"].values():
        assert secret["file"].startswith("./secrets/")
    for service in compose["services"].values():
        assert set(service["secrets"]) <= set(compose["secrets"])
        given = service.get("environment", {})
        assert not [name for name in given if "PASSWORD" in name and not name.endswith("_FILE")]


def test_the_container_may_do_no_more_than_it_needs(compose: Any) -> None:
    gate = compose["services"]["gate"]
    assert gate["read_only"] and gate["cap_drop"] == ["ALL"] and gate["ulimits"]["core"] == 0
    assert "ports" not in compose["services"]["db"]
    assert compose["networks"]["inside"]["internal"]
    assert "USER 10001:10001" in (DEPLOY / "Containerfile").read_text()


def test_prometheus_is_told_where_the_metrics_are(compose: Any) -> None:
    told = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    (job,) = told["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["127.0.0.1:9477"]}]


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    text = (DEPLOY / "sfumato.service").read_text()
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "LimitCORE=0"):
        assert line in text
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return
    # The program is not installed there: any that exists stands for it.
    unit = tmp_path / "sfumato.service"
    unit.write_text(text.replace("/opt/sfumato/bin/sfumato", "/bin/true"))
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert "sfumato.service" not in done.stderr, done.stderr
