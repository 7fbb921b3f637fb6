"""A learning release draws each value once, and context-free ones through one channel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.version_history import VersionHistory
from sfumato.tables.readers import Table


def test_a_key_without_a_ledger_is_refused_by_a_release_that_learns(tmp_path: Path) -> None:
    bit = sf.Alphabet(("a", "b"))
    rules = LearningRules(bit, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(bit))
    plan = LearningPlan.under(VersionHistory(rules))
    chain = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]], alphabet=bit)
    model = StreamModel(chain, Symbols(bit), stream="user", values=("place",))
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("user,place\nann,a\n")
    tables = Table.at(str(source)), Table.at(str(output))
    keyed = RunSpec(randomness=sf.keyed(bytes(range(32))))
    with pytest.raises(InvalidParameter, match="ledger must be given for a key"):
        release_table(*tables, model, plan, keyed)
    assert not output.exists()


def test_the_channel_of_context_free_values_never_moves() -> None:
    alphabet = sf.Alphabet.of_size(3)
    rules = LearningRules(
        alphabet,
        sf.PerStep(sf.SIP(3.0)),
        sf.loss.hamming(alphabet),
        first=10_000,
        purpose=Purpose.SIMULATION,
    )
    plan, coins = LearningPlan.under(VersionHistory(rules)), sf.seeded(1)
    state = plan.begin("ann")
    first = plan.prepare(state, 1)
    assert first is not None
    for place in range(400):
        (event,), state = plan.step(state, [place % 3], coins)
        plan.history.add("ann", alphabet.index(event.released))
    last = plan.prepare(state, 1)
    assert last is not None
    assert np.array_equal(last.design.channel.weights, first.design.channel.weights)
