"""A learning release with a key must know what left: its versions follow from the order of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import StreamModel, Symbols
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.version_history import VersionHistory
from sfumato.tables.readers import Table


def test_a_key_without_a_ledger_is_refused_by_a_release_that_learns(tmp_path: Path) -> None:
    bit = sf.Alphabet(("a", "b"))
    rules = LearningRules(bit, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(bit))
    plan = LearningPlan.under(VersionHistory(rules))
    chain = rules.start.model
    assert isinstance(chain, sf.MarkovChain)
    model = StreamModel(chain, Symbols(bit), stream="user", values=("place",))
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("user,place\nann,a\n")
    tables = Table.at(str(source)), Table.at(str(output))
    keyed = RunSpec(randomness=sf.keyed(bytes(range(32))))
    with pytest.raises(InvalidParameter, match="ledger must be given for a key"):
        release_table(*tables, model, plan, keyed)
    assert not output.exists()
