"""The first event must not wait for loops to be compiled: a made-up one waits before it."""

from __future__ import annotations

from typing import Any

from sfumato.core.compile_events import eagerly
from sfumato.core.randomness import secure
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.store.live import Asked
from sfumato.store.memory import MemoryStore
from sfumato.stream.live_release import open_release


def warm_streams(rules: str, model: StreamModel, policy: Policy | None) -> None:
    """Release a made-up value under the same rules, into a ledger that is forgotten.

    Loops that were compiled before are only loaded: then it takes milliseconds.
    """
    # Without the loop of a fleet, it would be compiled in the midst of later events.
    with eagerly():
        run, store = open_release(
            rules.encode(),
            model,
            policy,
            lambda plan, job, text: MemoryStore(plan=plan, job=job, rules=text),
            secure(),
            "made up",
        )
        try:
            for number in range(2):  # a stream that begins, and one that goes on
                run.answer([Asked(str(number), "made up", _value(model))])
            run.finish("made up")
        finally:
            run.close()
            store.close()


def _value(model: StreamModel) -> Any:
    """A value that the model reads."""
    if isinstance(model.encoding, Symbols) or model.alphabet.coordinates is None:
        return str(model.alphabet.labels[0])
    place = model.alphabet.coordinates[0].tolist()
    return place if len(model.values) > 1 else place[0]
