"""The document beside a released table: how the rules of a release are written and read again.

A sealed one is read only as it was written, to the letter, so that nothing can hide in it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from sfumato.core.errors import CorruptData
from sfumato.models.stream_model import StreamModel
from sfumato.stream.chain_terms import ChainBounds, LearningSpec
from sfumato.stream.learning_rules import EDITIONS
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.seal import Seal
from sfumato.tables.documents import read_document
from sfumato.tables.named_loss import NAMED_LOSSES, read_matrix

_IF_GIVEN = ("every", "first", "cap", "per", "thrift", "robust", "learn", "event", "time", "sealed")


def beside(path: str) -> Path:
    """Where the document of a released table lies."""
    return Path(f"{path}.plan.json")


def document(spec: ReleaseSpec, model: StreamModel) -> bytes:
    """The document that goes beside a released table; a loss from a file is copied into it."""
    loss = spec.loss_for(model)
    if isinstance(loss, str) and loss not in (*NAMED_LOSSES, "histogram"):
        loss = read_matrix(loss)
    named = spec.chosen_method().value
    whole = msgspec.structs.replace(spec, model=model.chain.fingerprint, loss=loss, method=named)
    rules = msgspec.to_builtins(whole)
    # What most releases do not have is left out.
    rules = {
        name: rules[name] for name in rules if name not in _IF_GIVEN or rules[name] is not None
    }
    if spec.learn is not None and spec.learn.edition == EDITIONS[0]:
        del rules["learn"]["edition"]  # as it was written before there were others
    return msgspec.json.format(msgspec.json.encode(rules), indent=2)


def read_spec(path: str | Path) -> ReleaseSpec:
    """Read what `document` made."""
    return parse_spec(read_document("the plan", path), path)


def parse_spec(document: bytes, source: str | Path) -> ReleaseSpec:
    """The same from bytes; `source` is what messages call them."""
    try:
        spec = msgspec.json.decode(document, type=ReleaseSpec)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise CorruptData(f"{source}: not the plan of a release ({problem})") from problem
    if spec.sealed is not None and not _is_as_written(document, spec.sealed):
        rule = (
            "a sealed plan must be as a release writes it, to the letter: it has room for no more"
        )
        raise CorruptData(f"{source}: {rule}")
    return spec


def _is_as_written(document: bytes, seal: Seal) -> bool:
    """Whether there is nothing but the rules in it: one spelling, no key twice, no other text."""
    rules = msgspec.json.decode(document)
    kinds = [(rules, ReleaseSpec), (rules["sealed"], Seal)]
    if isinstance(rules.get("robust"), dict):
        kinds.append((rules["robust"], ChainBounds))
    if isinstance(rules.get("learn"), dict):
        kinds.append((rules["learn"], LearningSpec))
    ordered = all(
        list(told) == [name for name in kind.__struct_fields__ if name in told]
        for told, kind in kinds
    )
    plain = msgspec.json.format(msgspec.json.encode(rules), indent=2)
    return ordered and document == plain and seal.has_no_room
