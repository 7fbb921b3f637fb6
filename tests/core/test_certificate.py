"""One certificate for every job: nothing is lost on paper, and nothing sounds better than it is."""

import json
from dataclasses import dataclass

import pytest

from sfumato.core.certificate import (
    Certificate,
    certificate_document,
    certificate_lines,
    saved,
)
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, SIP, ApproxDP, Disclosure, Guarantee, PureDP, TemporalDP
from sfumato.core.purpose import Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Detailed(Certificate):
    rows: int


@pytest.mark.parametrize(
    "guarantee",
    [SIP(0.5, 1e-6), LDP(2.0), PureDP(1.0), ApproxDP(1.0, 1e-5), TemporalDP(3.0)],
)
def test_a_document_holds_every_number_of_a_guarantee_and_the_details_of_the_job(
    guarantee: Guarantee,
) -> None:
    told = Detailed(guarantees=(guarantee,), scopes=("here",), kept=("town",), rows=7)
    document = json.loads(json.dumps(certificate_document(told)))
    assert document["rows"] == 7
    assert document["kept"] == ["town"]
    assert document["purpose"] == "release"
    notion = dict(document["guarantees"][0])
    kind = {type(one).__name__: type(one) for one in (guarantee,)}[notion.pop("notion")]
    assert notion.pop("scope") == "here"
    assert kind(**notion) == guarantee


def test_what_people_read_is_rounded_outward() -> None:
    told = Certificate(
        guarantees=(SIP(0.12345678), Disclosure(1.23456789, 0.12345678)),
        scopes=("under the model", "of one record"),
        loss="hamming",
        cost=0.12345678,
        silence=0.2,
    )
    assert certificate_lines(told) == [
        "leakage: SIP(0.123457) under the model, "
        "Disclosure(accuracy=1.23456, delta=0.123457) of one record",
        "expected hamming loss 0.123457 (the share of wrong values); saying nothing 0.2",
        "saves 38 % of what saying nothing loses, if the model fits",
    ]


def test_a_simulation_is_called_one() -> None:
    told = Certificate(guarantees=(), scopes=(), purpose=Purpose.SIMULATION)
    assert certificate_document(told)["purpose"] == "simulation"


def test_a_gain_never_exceeds_the_truth_and_a_tie_is_none() -> None:
    assert saved(0.2501, 1.0) == 0.74
    assert saved(1.0 + 1e-15, 1.0) == 0.0
    assert saved(None, 1.0) is None
    given = Certificate(guarantees=(), scopes=(), cost=1.0, silence=2.0, gain=0.4)
    assert given.gain == 0.4


def test_every_guarantee_says_when_it_holds() -> None:
    with pytest.raises(InvalidParameter, match="scopes must be as many as guarantees, 1"):
        Certificate(guarantees=(LDP(1.0),), scopes=())
