"""What a mixture brings: what the study measures, and what it says of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.models.cluster_fitting import stream_scores
from sfumato.models.stream_counts import StreamCounts
from sfumato.studies.streams import people_differ, people_study
from sfumato.studies.streams.people_differ import MIXTURE, ONE, PeoplePoint, scores
from tests.models.test_cluster_fitting import people
from tests.shell.running import done


def test_what_beliefs_predict_is_what_streams_score() -> None:
    model, paths = people(1, 6, 9)
    found = scores(model, np.array(paths))
    assert found == pytest.approx(stream_scores(model, StreamCounts.of(paths, 3)), abs=1e-6)


def test_people_are_compared_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = replace(people_differ.TASKS[0], values=24, total=3.0, every=12)
    monkeypatch.setattr(people_differ, "TASKS", (town,))
    monkeypatch.setattr(people_differ, "FEW", 5)
    printed = done("study", "people-differ", "--quick", "-o", tmp_path, "--json").document
    records = {record["model"]: record for record in printed["records"]}
    assert list(records) == [ONE, "order 2", MIXTURE]
    assert records[MIXTURE]["worst"] <= 1e-9
    assert records[ONE]["stated"] == pytest.approx(3.0, abs=1e-6)
    assert records[ONE]["predicted_more"] == 0


def point(model: str, **numbers: float) -> PeoplePoint:
    names = {name: 0.0 for name in PeoplePoint.__dataclass_fields__}
    given = {"data": "a town", "model": model, "unit": "km", "stand_in": False, "clusters": 3}
    return PeoplePoint(**(names | given | {"loss": 2.0} | numbers))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        (0.1, 0.02, "3 clusters predict more than one chain, and lose less"),
        (0.03, 0.02, "3 clusters predict no more and no less than one chain, and lose no more"),
        (-0.1, 0.02, "3 clusters predict less than one chain, and lose more"),
    ],
)
def test_the_numbers_decide_what_is_said(more: float, error: float, words: str) -> None:
    first = point(ONE, worst=1.5)
    own = point(
        MIXTURE, predicted_more=more, predicted_error=error, loss_more=-more, loss_error=error
    )
    (said,) = people_study.facts([first, own])
    assert words in said
    assert "up to 1.50 nats more than stated" in said


def test_one_kind_of_people_is_called_so() -> None:
    (said,) = people_study.facts([point(ONE), replace(point(MIXTURE), clusters=1)])
    assert said == "a town: streams held out speak for one kind of people"
