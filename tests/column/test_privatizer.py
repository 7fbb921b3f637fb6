import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

import sfumato as sf
from sfumato.column.privatize import Privatizer
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LIP
from tests.column.test_privatize import coins


def people(rows: int = 200, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"answer": rng.choice(["yes", "no", "maybe"], rows, p=[0.5, 0.3, 0.2])},
        index=rng.permutation([f"p{row}" for row in range(rows)]),
    )


def test_arguments_are_kept_as_they_came_and_checked_when_used() -> None:
    values = ["yes", "no"]
    made = Privatizer("answer", epsilon=-1.0, values=values, mechanism="magic", keep="id")
    assert made.get_params()["values"] is values
    assert vars(made).keys() == made.get_params().keys()
    with pytest.raises(InvalidParameter):
        made.fit(people())


def test_a_clone_has_the_same_arguments_and_nothing_that_was_learnt() -> None:
    key = coins()
    made = Privatizer(
        "answer", epsilon=1.0, prior={"yes": 0.5, "no": 0.5}, keep=["id"], randomness=key
    )
    copied = clone(made)
    before, after = made.get_params(), copied.get_params()
    assert before.keys() == after.keys()
    assert before["randomness"] is after["randomness"] is key
    assert {k: v for k, v in before.items() if v != after[k]} == {}
    fitted = Privatizer("answer", epsilon=1.0).fit(people())
    check_is_fitted(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(fitted))


def test_arguments_can_be_set_and_wrong_ones_are_refused() -> None:
    made = Privatizer("answer", epsilon=1.0).set_params(epsilon=2.0, loss="hamming")
    assert (made.epsilon, made.loss) == (2.0, "hamming")
    with pytest.raises(InvalidParameter, match="set_params must name one of column, epsilon"):
        made.set_params(epsilom=1.0)


def test_it_works_in_a_pipeline_and_says_what_it_promised() -> None:
    frame = people()
    known = (frame["answer"] == "yes").to_numpy()
    steps = (Privatizer("answer", epsilon=1.0), OneHotEncoder(), LogisticRegression())
    line = make_pipeline(*steps).fit(frame, known)
    assert isinstance(line, Pipeline)
    assert line[0].certificate_.lip <= LIP(1.0)
    assert any("this very column" in remark for remark in line[0].certificate_.remarks)
    assert line.predict(people(30, seed=2)).shape == (30,)
    assert line[0].certificate_.rows == 30
    nested = clone(line).set_params(privatizer__epsilon=3.0)
    assert nested[0].epsilon == 3.0
    assert "Privatizer" in repr(line)
    assert "Privatizer" in line._repr_html_()


def test_folds_are_cloned_and_scored() -> None:
    frame = people(240)
    known = (frame["answer"] == "yes").to_numpy()
    line = make_pipeline(Privatizer("answer", epsilon=4.0), OneHotEncoder(), LogisticRegression())
    scores = cross_val_score(line, frame, known, cv=3)
    assert scores.mean() > 0.7


def test_what_leaves_has_the_rows_in_their_order_and_no_index() -> None:
    frame = people()
    told = Privatizer("answer", epsilon=1.0).fit(frame).transform(frame)
    assert told.index.tolist() == list(range(len(frame)))
    assert told.columns.tolist() == ["answer"]


def test_learning_and_releasing_at_once_is_what_the_function_does() -> None:
    frame = people()
    made = Privatizer("answer", epsilon=1.0, randomness=coins())
    told = made.fit_transform(frame)
    done = sf.privatize(frame, "answer", epsilon=1.0, randomness=coins())
    assert told.equals(done.frame)
    assert made.certificate_ == done.certificate


def test_a_release_before_anything_was_learnt_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="fit must come before a release"):
        Privatizer("answer", epsilon=1.0).transform(people())


def test_changed_arguments_wait_for_the_next_fit() -> None:
    made = Privatizer("answer", epsilon=1.0).fit(people())
    made.set_params(epsilon=30.0)
    assert made.release(people()).certificate.lip <= LIP(1.0)
    assert made.fit(people()).release(people()).certificate.lip.epsilon > 2.0


def test_the_key_of_coins_is_never_shown_or_stored() -> None:
    made: Any = Privatizer("answer", epsilon=1.0, randomness=coins())
    assert "0123456789abcdef" not in repr(made) + repr(vars(made))
    with pytest.raises(TypeError, match="cannot be copied or stored"):
        pickle.dumps(made)


@pytest.mark.parametrize("kind", ["category", "string", "object"])
def test_columns_of_every_kind_of_text_are_released(kind: str) -> None:
    frame = people().astype({"answer": kind})
    told = Privatizer("answer", epsilon=1.0).fit(frame).transform(frame)
    assert set(told["answer"]) <= {"yes", "no", "maybe"}
