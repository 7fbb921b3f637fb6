"""What became of checking a certificate: figures computed again, and compared to the last digit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sfumato.core.errors import CorruptData, SfumatoError

_SHOWN = 20
# Texts of figures in messages are cut: a channel has thousands of weights.
_LONGEST = 60


@dataclass(slots=True)
class Verification:
    """What was found.

    Attributes:
        job: The command that wrote the certificate.
        purpose: Whether data left, or coins can be guessed.
        rows: Released rows.
        figures: What was computed again, by its name.
        checked: What was verified, in words.
        unchecked: What was not, and why, in words.
        problems: What is wrong: the field, and how.
        promise: Every figure that is promised, and whether it was computed again.
        private: What was seen beside the true rows, for whoever holds them: it never leaves.

    Examples:
        >>> found = Verification("privatize", "release", 100)
        >>> found.compare({"lip": 0.01, "seen": 1}, {"lip": 1.0, "ldp": 2.0}, "the channel")
        >>> found.problems[0]
        'lip: the certificate says 0.01; computed from the channel 1.0'
        >>> found.problems[1:], found.passed
        (['ldp: missing', 'seen: an unknown field'], False)
        >>> found.promise |= {"lip": True, "ldp": False}
        >>> found.promise_checked
        False
    """

    job: str
    purpose: str
    rows: int
    figures: dict[str, Any] = field(default_factory=dict)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    promise: dict[str, bool] = field(default_factory=dict)
    private: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything that could be checked fits."""
        return not self.problems

    @property
    def promise_checked(self) -> bool:
        """Whether every figure that is promised was computed again."""
        return bool(self.promise) and all(self.promise.values())

    @property
    def verdict(self) -> str:
        """What became of it, in words that say no more than was found.

        Examples:
            >>> Verification("privatize", "release", 9, promise={"lip": False}).verdict
            'nothing in it is contradicted, and NOT ONE figure of its promise could be checked'
        """
        if not self.passed:
            return "the certificate does NOT fit"
        if self.promise_checked:
            return "the certificate fits"
        if not any(self.promise.values()):
            return (
                "nothing in it is contradicted, and NOT ONE figure of its promise could be checked"
            )
        open_ = ", ".join(name for name, known in self.promise.items() if not known)
        return f"the certificate fits as far as it can be checked; NOT checked is its {open_}"

    def note(self, name: str, problem: str) -> None:
        """Remember what is wrong with a field; the first few."""
        if len(self.problems) < _SHOWN:
            self.problems.append(f"{name}: {problem}")

    def compare(self, stated: Mapping[str, Any], due: Mapping[str, Any], origin: str) -> None:
        """Hold every field of a document against what it must be; others are unknown.

        Args:
            stated: What the certificate says.
            due: What follows from what it is held against.
            origin: What that is, in words.
        """
        for name, problem in differences(stated, due, origin):
            self.note(name, problem)


@contextmanager
def reading_certificate(what: str) -> Iterator[None]:
    """Whatever else goes wrong while a certificate is read is damage.

    Args:
        what: What the certificate is of.

    Examples:
        >>> with reading_certificate("a column"):
        ...     {}["epsilon"]
        Traceback (most recent call last):
        sfumato.core.errors.CorruptData: the certificate of a column is damaged: KeyError('epsilon')
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        if isinstance(problem, SfumatoError):
            raise
        raise CorruptData(f"the certificate of {what} is damaged: {problem!r}") from problem


def asked_of(document: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """What a certificate says was asked for: the fields of its job, and what it says is kept.

    Examples:
        >>> asked_of({"asked": {"period": 7}}, ["time"])
        Traceback (most recent call last):
        sfumato.core.errors.CorruptData: asked: its fields must be time
    """
    asked: Mapping[str, Any] = document["asked"]
    if set(asked) != set(names):
        raise CorruptData(f"asked: its fields must be {', '.join(names)}")
    if "keep" in asked:
        kept = [*document["kept"], *document["independent"]]
        if sorted(kept) != sorted(asked["keep"]):
            raise CorruptData("asked.keep: it must name the kept columns of the certificate")
    return asked


def differences(
    stated: Mapping[str, Any],
    due: Mapping[str, Any],
    origin: str,
    within: str = "",
    what: str = "certificate",
) -> Iterator[tuple[str, str]]:
    """The fields in which a document is not what it must be, and how."""
    for name, value in due.items():
        path = f"{within}{name}"
        if name not in stated:
            yield path, "missing"
        else:
            yield from _different(stated[name], value, origin, path, what)
    for name in stated:
        if name not in due:
            yield f"{within}{name}", "an unknown field"


def _different(
    stated: Any, due: Any, origin: str, path: str, what: str
) -> Iterator[tuple[str, str]]:
    if isinstance(stated, Mapping) and isinstance(due, Mapping):
        yield from differences(stated, due, origin, f"{path}.", what)
    elif isinstance(stated, list) and isinstance(due, list | tuple) and len(stated) == len(due):
        for place, (one, other) in enumerate(zip(stated, due, strict=True)):
            yield from _different(one, other, origin, f"{path}[{place}]", what)
    elif (said := figure_text(stated)) != (found := figure_text(due)):
        yield path, f"the {what} says {_cut(said)}; computed from {origin} {_cut(found)}"


def figure_text(value: Any) -> str:
    """The one text of a figure: equal only for equal kinds and all digits equal.

    Examples:
        >>> figure_text(1.0), figure_text(1), figure_text(0.1 + 0.2), figure_text(math.inf)
        ('1.0', '1', '0.30000000000000004', '"inf"')
    """
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
