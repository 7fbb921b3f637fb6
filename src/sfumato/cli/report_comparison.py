"""What a report says beside what its files say: all of it, or what is public of a holder's.

A report is no signature: whoever edits it can write its digest anew. So whatever follows from
public files is computed again and compared; what needs true values or a key is named as open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.core.errors import InvalidParameter
from sfumato.core.verification import differences

SECRET = ("true values", "key")
_COMPARED = (
    *("level", "passed", "promise", "totals", "streams", "problems", "checked", "not_checked"),
)
_NEEDED = {"audit": ("model",), "verify": ("certificate", "table")}
_KNOWN = {
    "audit": ("output", "plan", "model", "policy", "truth", "plausible", "ledger", *SECRET),
    "verify": ("certificate", "table", "history", *SECRET),
}
_SEVERAL = ("output", "plan", "true values")
# How problems are told that were found beside true values: `_problems`, `_findings`.
_TOLD = re.compile(r"(?P<count>[1-9][\d,]*) (?:of kind (?P<kind>\w+): |problems, )told to the .+")
_HELD_KINDS = ("values", "coins")


@dataclass(frozen=True, slots=True)
class Held:
    """What is secret of the files of a report, and what of it is at hand.

    Attributes:
        level: Who wrote the report: anyone (0), the holder of the true values (1), of the key (2).
        against: The true values.
        key_file: The key of the coins.
        shared_key: Whether others may read it.
        commitment: What was published of it.
    """

    level: int
    against: list[str] = field(default_factory=list)
    key_file: str | None = None
    shared_key: bool = False
    commitment: str | None = None

    def __post_init__(self) -> None:
        own = 0 if not self.against else 1 if self.key_file is None else 2
        if self.key_file is not None and not self.against:
            raise InvalidParameter("--key-file", self.key_file, "come with --against")
        if own not in (0, self.level):
            rule = f"be those of the report, which was made with {_WHO[self.level]}"
            raise InvalidParameter("--against, --key-file", "other files", rule)

    @property
    def is_partial(self) -> bool:
        """Whether something of the report can be found by its holder alone."""
        return self.level > 0 and not self.against

    @property
    def needs(self) -> str:
        """What it takes to find all again."""
        return _WHO[self.level]


_WHO = {0: "public files alone", 1: "the true values", 2: "the true values and the key"}


def level_of(files: Sequence[dict[str, Any]]) -> int:
    """Who wrote a report, by the files that it names."""
    roles = {each["role"] for each in files}
    return 2 if "key" in roles else 1 if "true values" in roles else 0


def wrong_files(command: str, files: Sequence[dict[str, Any]]) -> list[str]:
    """What is wrong with the list of files: nothing that is public is kept back by it."""
    if command not in _KNOWN:
        return [f"command: {str(command)[:40]!r} is none that writes reports"]
    roles = [each["role"] for each in files]
    wrong = [f"files: {command} reads no {role}" for role in roles if role not in _KNOWN[command]]
    wrong += [f"files: {role}: missing" for role in _NEEDED[command] if role not in roles]
    wrong += [
        f"files: {role}: there is one at most"
        for role in dict.fromkeys(roles)
        if roles.count(role) > 1 and role not in _SEVERAL
    ]
    for each in files:
        if (each["sha256"] is None) != (each["role"] in SECRET):
            rule = "has no digest" if each["sha256"] is None else "has a digest, and is secret"
            wrong.append(f"files: {each['role']}: it {rule}")
    if "key" in roles and "true values" not in roles:
        wrong.append("files: key: it comes with true values")
    return wrong


def compare(document: dict[str, Any], due: dict[str, Any], held: Held) -> tuple[list[str], ...]:
    """The problems of a report, and what of it stays open.

    Args:
        document: The report.
        due: What is found again, by the names of its fields.
        held: Whether that is all of it.
    """
    if not held.is_partial:
        return _different(document, due, _COMPARED), []
    problems = _different(document, due, ("level", "promise", "streams"))
    problems += _counts(document, due)
    stated, totals = dict(document["totals"]), dict(due["totals"])
    alone = [] if document["command"] == "audit" else [n for n in stated if n not in totals]
    for name in (*alone, "problems"):
        stated.pop(name, None)
        totals.pop(name, None)
    problems += _different({"totals": stated}, {"totals": totals}, ("totals",))
    for name in ("checked", "not_checked"):
        lines = [line for line in due[name] if line not in document[name]]
        problems += [f"{name}: {line!r} is missing" for line in lines]
    return problems, list(_open(document, due, alone, held))


def _different(document: dict[str, Any], due: dict[str, Any], names: Sequence[str]) -> list[str]:
    stated, found = ({name: each[name] for name in names} for each in (document, due))
    return [
        f"{name}: {how}" for name, how in differences(stated, found, "the files", what="report")
    ]


def _counts(document: dict[str, Any], due: dict[str, Any]) -> Iterator[str]:
    """Problems that the public files have must be told; others are the holder's to find."""
    told = [_TOLD.fullmatch(str(line)) for line in document["problems"]]
    stated, found = _by_kind(told), _by_kind([_TOLD.fullmatch(line) for line in due["problems"]])
    if None in told or len(stated) != len(told):
        yield "problems: the report must tell how many there are, of each kind once"
    audit = document["command"] == "audit"
    for kind in dict.fromkeys((*stated, *found)):
        said, least = stated.get(kind, 0), found.get(kind, 0)
        if said < least or (said > least and audit and kind not in _HELD_KINDS):
            name = "problems" if kind is None else f"problems of kind {kind}"
            yield f"{name}: the report says {said:,}; the public files alone have {least:,}"
    total = sum(stated.values())
    if audit and document["totals"].get("problems") != total:
        yield f"totals.problems: the report says another number than its problems, {total:,}"
    passed = not document["problems"] and not found
    if document["passed"] is not passed:
        verdict = "true" if passed else "false"
        yield f"passed: it must be {verdict}, by the problems of the report and of the public files"


def _by_kind(told: Sequence[re.Match[str] | None]) -> dict[str | None, int]:
    return {each["kind"]: int(each["count"].replace(",", "")) for each in told if each is not None}


def _open(
    document: dict[str, Any], due: dict[str, Any], alone: Sequence[str], held: Held
) -> Iterator[str]:
    """What only the holder can find again, by its name."""
    kinds = " of kinds values and coins" if document["command"] == "audit" else ""
    names = ["level", "passed, beyond the verdict on public files", f"problems{kinds}"]
    names += [f"totals.{name}" for name in alone]
    lines = [str(line)[:200] for line in document["checked"] if line not in due["checked"]]
    for name in (*names, *(f"checked {line!r}" for line in lines)):
        yield f"{name}: needs {held.needs}"
