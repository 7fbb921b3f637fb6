"""From what an administrator asks to the rules of a release: checked, completed, written down.

What was left out is decided here as the command line decides it: the method of a stream with a cap
on each value is far-sighted where that can be computed, a total is spent in the bursts that lose
least on the model, and channels are compiled.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sfumato.core.checks import choice
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.models.encoding import Symbols
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.series.filter_banks import seasonal
from sfumato.series.series_ledger import JOB as SERIES
from sfumato.series.series_ledger import rules_document
from sfumato.series.series_methods import series_method
from sfumato.series.series_spec import SeriesSpec
from sfumato.service.problems import of_body
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy
from sfumato.store.codec import from_bytes
from sfumato.store.files import AnyModel
from sfumato.stream.input_rows import Reading
from sfumato.stream.policy_files import compile_for
from sfumato.stream.release_defaults import seeks_bursts, with_bursts, with_method
from sfumato.stream.release_document import document, parse_spec
from sfumato.stream.release_spec import JOB as STREAM
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.cells import Late, Missing
from sfumato.tables.named_loss import NAMED_LOSSES
from sfumato.temporal.temporal_spec import JOB as TEMPORAL
from sfumato.temporal.temporal_spec import TemporalSpec
from sfumato.temporal.temporal_spec import document as temporal_document
from sfumato.temporal.temporal_spec import parse_spec as parse_temporal

JOBS = (STREAM.name, SERIES.name, TEMPORAL.name)
_OF_TABLES = ("model", "policy", "sealed", "event", "time", "keep", "independent")
_NOT_ASKED = dict.fromkeys(_OF_TABLES, "") | {
    "per": ": live events need not have times, so budgets count values",
    "learn": ": a live release has one model from the start; tables are learnt from",
}
"""Rules of tables, or that the service finds by itself, and why where that is not plain."""
# Each value has an entry in tables of its method: what is asked over a network must neither fill
# the memory of a service nor hold it up. A value a minute for two years.
_MOST_VALUES, _MOST_STEPS = 1_000_000, 10_000
_Values = Annotated[int, Meta(ge=1, le=_MOST_VALUES)]


@dataclass(frozen=True, slots=True)
class MadeRules:
    """Rules as a ledger keeps them, and the channels that go with them."""

    document: str
    policy: Policy | None = None


class SeriesRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules of job `realtime`; see `sfumato realtime`.

    Attributes:
        sensitivity: The most that one person can change any value.
        epsilon: Budget of the whole series.
        length: Values that the budget is for.
        delta: Budget of approximate methods.
        window: Values protected together, for methods of that kind.
        method: One of those that `sfumato compare` knows.
        unit: `user`, `event` or `w-event`.
        weight: Of the true value, for method `published`.
        interval: Values are clamped to it, and so is what leaves.
        period: The filter learns what comes again every so many values.
        purpose: A release, or a simulation.
    """

    sensitivity: float
    epsilon: float
    length: _Values
    delta: float = 1e-6
    window: _Values = 10
    method: str = "realtime"
    unit: str | None = None
    weight: float | None = None
    interval: tuple[float, float] | None = None
    period: int | None = None
    purpose: str = "release"


def rules_schema() -> dict[str, Any]:
    """What rules may be asked, as a JSON schema: one of three forms, by job.

    Examples:
        >>> [one["title"] for one in rules_schema()["anyOf"]]
        ['release', 'realtime', 'temporal']
    """
    kinds: dict[str, type[msgspec.Struct]] = {
        STREAM.name: ReleaseSpec,
        SERIES.name: SeriesRequest,
        TEMPORAL.name: TemporalSpec,
    }
    return {"anyOf": [_schema(name, kind) for name, kind in kinds.items()]}


def _schema(job: str, kind: type[msgspec.Struct]) -> dict[str, Any]:
    (own,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    whole: dict[str, Any] = _inlined(parts.pop(own["$ref"]), parts)
    fields = {name: told for name, told in whole["properties"].items() if name not in _NOT_ASKED}
    described = f"Rules of job {job}. {whole.get('description', '')}".strip()
    return {**whole, "title": job, "description": described, "properties": fields}


def _inlined(part: Any, parts: Mapping[str, Any]) -> Any:
    """A schema with what it refers to in its place: it stands within another document."""
    if isinstance(part, list):
        return [_inlined(each, parts) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _inlined(parts[part["$ref"]], parts)
    return {name: _inlined(each, parts) for name, each in part.items()}


def read_model(data: bytes) -> StreamModel:
    """A model from the bytes of its file.

    Raises:
        CorruptData: If they are none, are damaged or come from another version.
        InvalidParameter: If they are a model of something else.
    """
    kinds: Any = AnyModel
    return as_stream_model(from_bytes(data, kinds))


def as_stream_model(found: object) -> StreamModel:
    """A model with its reading rules; a bare chain reads values as they are."""
    if isinstance(found, MarkovChain | PatternLibrary):
        return StreamModel(found, Symbols(found.alphabet))
    if not isinstance(found, StreamModel):
        raise InvalidParameter("model", type(found).__name__, "hold a chain, as `sfumato fit` does")
    # Events that come over the network have no times that the plan is told of.
    return found.steady


def made_rules(
    job: str, asked: Mapping[str, Any], model: StreamModel | None, policy: Policy | None
) -> MadeRules:
    """The rules of a release, complete; it may compile for minutes.

    Args:
        job: `release`, `realtime` or `temporal`.
        asked: Rules by their names, as they are in the document of the job.
        model: Its model; job `release` has one.
        policy: Its channels, if they were compiled before.

    Raises:
        InvalidParameter: If the rules are not those of the job, or do not fit together.
    """
    match job:
        case STREAM.name:
            return _stream_rules(asked, model, policy)
        case SERIES.name:
            _refuse_model(model, policy)
            return MadeRules(_series_rules(_as(SeriesRequest, asked)))
        case TEMPORAL.name:
            _refuse_model(model, policy)
            return MadeRules(temporal_document(_temporal_rules(asked)).decode())
        case _:
            raise InvalidParameter("job", job, f"be one of {', '.join(JOBS)}")


def check_asked(
    job: str, asked: Mapping[str, Any], model: StreamModel | None, policy: Policy | None
) -> None:
    """Refuse rules that are wrong at first sight: in no time, before anything is compiled.

    Args:
        job: `release`, `realtime` or `temporal`.
        asked: Rules by their names.
        model: Its model; job `release` has one.
        policy: Its channels, if they were compiled before.

    Raises:
        InvalidParameter: If a rule is not one of the job, or out of its range.
    """
    match job:
        case STREAM.name:
            _check_streams(asked, model, policy)
        case SERIES.name:
            _refuse_model(model, policy)
            _series_rules(_as(SeriesRequest, asked))
        case TEMPORAL.name:
            _refuse_model(model, policy)
            _temporal_rules(asked)
        case _:
            raise InvalidParameter("job", job, f"be one of {', '.join(JOBS)}")


def _as(kind: type[Any], asked: Mapping[str, Any]) -> Any:
    known = ", ".join(one.encode_name for one in msgspec.structs.fields(kind))
    unknown = sorted(set(asked) - {one.encode_name for one in msgspec.structs.fields(kind)})
    if unknown:
        raise InvalidParameter("rules", "others", f"have no names but those of the job: {known}")
    try:
        return msgspec.convert(dict(asked), kind)
    except msgspec.ValidationError as problem:
        told = of_body(problem)
    if told.rule is not None and told.field not in (None, "$"):
        field = f"rules.{told.field.removeprefix('$.')}" if told.field else "rules"
        raise InvalidParameter(field, "another", f"be of the job: {told.rule}")
    raise InvalidParameter("rules", "others", f"be those of the job: {told.detail}")


def _refuse_model(model: StreamModel | None, policy: Policy | None) -> None:
    if model is not None or policy is not None:
        raise InvalidParameter("model", "one", "not be given: this job has none")


def _asked_streams(
    asked: Mapping[str, Any], model: StreamModel | None
) -> tuple[ReleaseSpec, StreamModel]:
    """The rules of a release of streams as they are asked; what is left out is chosen later."""
    if model is None:
        raise InvalidParameter("model", None, "be given: a release of streams has one")
    for name, why in _NOT_ASKED.items():
        if name in asked:
            raise InvalidParameter(f"rules.{name}", "one", f"not be given here{why}")
    spec: ReleaseSpec = _as(ReleaseSpec, asked)
    # Elsewhere another word names a file: whoever asks over a network must not have one read.
    if isinstance(spec.loss, str) and spec.loss not in (*NAMED_LOSSES, "histogram"):
        rule = f"be a matrix, histogram or one of {', '.join(NAMED_LOSSES)}"
        raise InvalidParameter("rules.loss", "another", rule)
    spec.schedule()
    return spec, model


def _check_streams(
    asked: Mapping[str, Any], given: StreamModel | None, policy: Policy | None
) -> None:
    """Refuse what no release could be made of, without looking ahead or compiling."""
    spec, model = _asked_streams(asked, given)
    try:
        if asked.get("method") is None:
            spec = with_method(spec, model, policy)
        reading = Reading(
            missing=choice("missing", Missing, spec.missing),
            late=choice("late", Late, spec.late),
        )
        reading.check(model)
        if policy is None and spec.chosen_method() is Method.FAR_SIGHTED:
            spec.check_sight(model)
            spec = msgspec.structs.replace(spec, method=Method.OPTIMAL.value, thrift=None)
        named = None if policy is None else policy.fingerprint
        msgspec.structs.replace(spec, policy=named).plan(model, policy)
    except InvalidParameter as wrong:
        # Options are called so where they are typed; who asks here has given a field.
        field = wrong.name.removeprefix("--").replace("-", "_")
        if field not in spec.__struct_fields__:
            raise
        refused = InvalidParameter(f"rules.{field}", wrong.value, wrong.rule)
    else:
        return
    raise refused


def _stream_rules(
    asked: Mapping[str, Any], given: StreamModel | None, policy: Policy | None
) -> MadeRules:
    spec, model = _asked_streams(asked, given)
    if asked.get("method") is None:
        spec = with_method(spec, model, policy)
    if spec.every is None and seeks_bursts(spec, model):
        spec = _spread(spec, model)
    if policy is None and _is_compiled(spec, model):
        policy = compile_for(model, spec)
    fingerprint = None if policy is None else policy.fingerprint
    spec = msgspec.structs.replace(spec, policy=fingerprint)
    spec.plan(model, policy)
    return MadeRules(document(spec, model).decode(), policy)


def _spread(spec: ReleaseSpec, model: StreamModel) -> ReleaseSpec:
    with tempfile.TemporaryDirectory() as folder:  # what is found goes into the rules
        found = with_bursts(spec, model, Path(folder) / "a.model")
    even = found.every == 1 and found.first in (None, 1.0)
    return msgspec.structs.replace(found, every=None, first=None) if even else found


def _is_compiled(spec: ReleaseSpec, model: StreamModel) -> bool:
    """Whether channels are compiled before the first event.

    Those of a policy are made for one belief at a time: a release for many chains looks ahead
    without.
    """
    if spec.chosen_method() is not Method.FAR_SIGHTED or spec.robust is not None:
        return False
    return isinstance(model.chain, MarkovChain) and model.chain.order == 1


def _series_rules(asked: SeriesRequest) -> str:
    estimate = None if asked.period is None else seasonal(asked.period)
    names = ("sensitivity", "epsilon", "length", "delta", "window", "method", "unit", "weight")
    spec = SeriesSpec.of(
        **{name: getattr(asked, name) for name in names},
        interval=asked.interval,
        estimate=estimate,
    )
    made = rules_document(series_method(spec), spec, choice("purpose", Purpose, asked.purpose))
    return msgspec.json.encode(made).decode()


def _temporal_rules(asked: Mapping[str, Any]) -> TemporalSpec:
    spec: TemporalSpec = _as(TemporalSpec, asked)
    if spec.steps is not None and spec.steps > _MOST_STEPS:
        rule = (
            f"be at most {_MOST_STEPS:,}: each has a share of its own; without steps none is last"
        )
        raise InvalidParameter("rules.steps", spec.steps, rule)
    return spec.check()


def agree(job: str, asked: Mapping[str, Any], stored: str) -> bool:
    """Whether a release that is there has all the rules that were asked; others were chosen.

    Args:
        job: The job of both.
        asked: Rules as an administrator asks them.
        stored: The document of the release.
    """
    match job:
        case STREAM.name:
            there = msgspec.to_builtins(parse_spec(stored.encode(), "the rules"))
        case SERIES.name:
            return _series_rules(_as(SeriesRequest, asked)) == stored
        case TEMPORAL.name:
            there = msgspec.to_builtins(parse_temporal(stored.encode(), "the rules"))
        case _:
            return False
    wanted = msgspec.to_builtins(_as(ReleaseSpec if job == STREAM.name else TemporalSpec, asked))
    return all(there.get(name) == wanted[name] for name in asked if asked[name] is not None)
