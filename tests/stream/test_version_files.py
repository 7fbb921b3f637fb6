"""Files of versions: what a run that goes on may find beside its ledger."""

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.store.codec import to_bytes
from sfumato.store.protocol import LedgerMismatch
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ModelVersion
from sfumato.stream.version_files import LearntVersions, check_versions, save_versions
from sfumato.stream.version_history import VersionHistory


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> VersionHistory:
    """One in which every version moves streams, before anything has left."""
    chains = PlausibleChains.from_radius(MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]]), 0.1)

    def moving(rules: LearningRules, earlier: list[ModelVersion], *_: object) -> ModelVersion:
        number = len(earlier) + 1
        return ModelVersion(number, rules.cut(number), 1, 1, chains, None, moves=True, remark="")

    monkeypatch.setattr("sfumato.stream.version_history.next_version", moving)
    bit = sf.Alphabet.of_size(2)
    rules = LearningRules(bit, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(bit), first=3)
    return VersionHistory(rules)


def leave(history: VersionHistory, values: int) -> None:
    for value in range(values):
        history.add("ann", value % 2)


def test_a_run_that_ended_where_a_version_is_due_goes_on(
    history: VersionHistory, tmp_path: Path
) -> None:
    path = tmp_path / "l.versions"
    leave(history, 3)
    check_versions(history, path)  # nothing left under it, so nothing was written
    save_versions(history, path)
    check_versions(history, path)
    leave(history, 3)
    assert len(history.versions()) == 2
    check_versions(history, path)


def test_values_that_left_under_a_version_need_its_file(
    history: VersionHistory, tmp_path: Path
) -> None:
    path = tmp_path / "l.versions"
    leave(history, 4)
    with pytest.raises(LedgerMismatch):
        check_versions(history, path)
    save_versions(history, path)
    check_versions(history, path)
    leave(history, 3)
    with pytest.raises(LedgerMismatch):  # one that lacks the version values left under
        check_versions(history, path)
    more = history.versions()
    path.write_bytes(to_bytes(LearntVersions(history.rules.fingerprint, (*more, more[1]))))
    with pytest.raises(LedgerMismatch):
        check_versions(history, path)
