"""The rules of a release: what was typed, what its ledger says, and what nobody said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli import options
from sfumato.cli.console import progress, say

if TYPE_CHECKING:
    from sfumato.models.stream_model import StreamModel
    from sfumato.solver.policy import Policy
    from sfumato.stream.release_spec import ReleaseSpec

_BUDGET = ("epsilon", "budget", "horizon", "window", "ldp", "per")


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """What decides the rules that were not given outright.

    Attributes:
        file: The file of the model: what takes long to find is kept beside it.
        model: The model.
        way: The method, as typed.
        spread: Where a total is spent, as typed.
        shown: Whether to say what was chosen.
    """

    file: str
    model: StreamModel
    way: options.Way
    spread: options.Spread
    shown: options.Shown

    @property
    def remark(self) -> Callable[[str], None] | None:
        """Who is told what was chosen; nobody where nobody looks."""
        return None if self.shown.no_progress else say

    def completed(
        self,
        spec: ReleaseSpec,
        policy: Policy | None = None,
        begun: ReleaseSpec | None = None,
    ) -> ReleaseSpec:
        """The rules with a method, and with a total where it is best spent.

        Args:
            spec: The rules but for the method and for where a total is spent.
            policy: The policy that was given.
            begun: The rules of the ledger that goes on; they stay unless others are given.
        """
        from msgspec.structs import replace

        if spec.per is not None:  # what does not go with it is refused before anything is compiled
            asked = self.spread
            replace(spec, every=asked.number(), first=asked.first, cap=asked.cap).schedule()
        elif spec.epsilon is not None and spec.budget is not None:
            spec.schedule()  # refuses both; else a method that nobody named would be refused
        found = self._spread(self._by_method(spec, policy, begun), policy, begun)
        if found.every == 1 and found.first in (None, 1.0):
            return replace(found, every=None, first=None)  # as an even split has always been told
        return found

    def _by_method(
        self, spec: ReleaseSpec, policy: Policy | None, begun: ReleaseSpec | None
    ) -> ReleaseSpec:
        from msgspec.structs import replace

        from sfumato.solver.design_methods import Method, method_named
        from sfumato.stream.release_defaults import with_method

        thrift = self.way.thrift
        if self.way.method is not None:
            named = method_named("--method", self.way.method)
            spec = replace(spec, method=named.value)
        elif begun is not None and policy is None:
            thrift = begun.thrift if thrift is None else thrift
            spec = replace(spec, method=begun.method)
        else:
            spec = with_method(spec, self.model, policy, self.remark)
            if self.remark and spec.chosen_method() is Method.FAR_SIGHTED and policy is None:
                self.remark(
                    "far-sighted: as much of the cap is spent as helps the stream (--method "
                    "step-wise, or --thrift, leaks less)"
                )
        return replace(spec, thrift=thrift)

    def _spread(
        self, spec: ReleaseSpec, policy: Policy | None, begun: ReleaseSpec | None
    ) -> ReleaseSpec:
        from msgspec.structs import replace

        from sfumato.core.errors import InvalidParameter
        from sfumato.stream.release_defaults import could_seek_bursts, seeks_bursts, with_bursts

        asked = self.spread
        spec = replace(spec, every=asked.number(), first=asked.first, cap=asked.cap)
        kept = begun is not None and spec.budget is not None
        if begun is not None and kept and asked.every is None and asked.first is None:
            return replace(spec, every=begun.every, first=begun.first)
        if asked.every == "auto" and asked.first is not None:
            raise InvalidParameter("--first", asked.first, "not come with --every auto")
        if asked.every != "auto" and (
            asked.every is not None or not seeks_bursts(spec, self.model)
        ):
            untried = asked.every is None and policy is None and could_seek_bursts(spec, self.model)
            if self.remark and untried:
                spec.schedule()  # what is no budget is refused before anything is said
                self.remark(
                    "the total is spent evenly: with so many values or symbols bursts are sought "
                    "only if asked for (--every auto), which takes longer; where values stay as "
                    "they are, an even split tells next to nothing"
                )
            return spec
        found = with_bursts(spec, self.model, self.file, self.remark)
        if asked.every is None and policy is not None and policy.epsilon < found.per_step()[0]:
            return spec  # its channels were compiled for an even split
        if self.remark:
            self.remark(
                f"the total is spent {options.in_words(found.every or 1, found.first or 1.0)}"
            )
        return found

    def policy(self, spec: ReleaseSpec, begun: ReleaseSpec | None = None) -> Policy | None:
        """The policy of a release to which none was given; None where every step is solved.

        That which `compile` wrote beside the model, if it is for this release; for a far-sighted
        one, as it was kept beside the model, or compiled now.

        Args:
            spec: The rules, completed.
            begun: The rules of the ledger that goes on; its policy stays.
        """
        from sfumato.models.markov import MarkovChain
        from sfumato.solver.design_methods import Method
        from sfumato.stream.policy_files import compile_for, kept_policy, policy_named

        if spec.robust is not None or (begun and begun.policy is None):
            return None
        if begun is None and (compiled := self._compiled(spec)) is not None:
            return compiled
        if spec.chosen_method() is not Method.FAR_SIGHTED:
            return None
        if not isinstance(self.model.chain, MarkovChain) or self.model.chain.order > 1:
            return None  # every step is solved
        if begun and begun.policy and (found := policy_named(begun.policy, self.file)) is not None:
            return found[0]
        spec.check_sight(self.model)

        def make() -> Policy:
            if self.remark:
                self.remark("compiling far-sighted channels for this model, loss and cap, once")
            with progress("compiling, in percent", 100, self.shown.no_progress) as show:
                made = compile_for(
                    self.model, spec, progress=lambda done, whole: show(100 * done // whole)
                )
            if self.remark and made.solves:
                self.remark("each step solves a small program for the belief of its moment")
            elif self.remark:
                self.remark(
                    f"{made.channels:,} channels; they lose about "
                    f"{100 * made.report.extra_loss:.1f} % more than channels solved on the spot, "
                    f"as {100 * made.report.missed:.0f} % of the steps still are"
                )
            return made

        return kept_policy(self.model, spec, self.file, make, self.remark)

    def _compiled(self, spec: ReleaseSpec) -> Policy | None:
        """The policy that `compile` wrote for this release, if it stands in for solving steps."""
        from sfumato.models.markov import MarkovChain
        from sfumato.stream.policy_files import compiled_policy

        if not isinstance(self.model.chain, MarkovChain):
            return None
        found = compiled_policy(self.model, spec, self.file)
        if found is None:
            return None
        policy, path = found
        if policy.sight is None and not policy.solves:
            # Kept channels lose up to some per cent more than steps that are solved one by one.
            if self.remark and self.way.method is None:
                self.remark(f"--policy {path} would be faster: it was compiled for this release")
            return None
        if self.remark:
            self.remark(f"channels come from {path}, which was compiled for this release")
        return policy


def policy_of(
    spec: ReleaseSpec,
    given: str | None,
    model: StreamModel,
    file: str,
    at_hand: Iterable[str] = (),
) -> tuple[Policy | None, str | None]:
    """The policy that a release was made with, and its file: None if it was compiled once more.

    Args:
        spec: The rules of the release; they name their policy.
        given: The file of the policy, if one was given.
        model: The model.
        file: The file of the model; policies beside it are known by their fingerprints.
        at_hand: Other files in which it may be.

    Raises:
        InvalidParameter: If it is in no file, and model and rules make another.
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.solver.design_methods import Method
    from sfumato.stream.policy_files import load_policy, made_again, policy_named

    if given is not None or spec.policy is None:
        return (None, None) if given is None else (load_policy(given), given)
    spec.check_model(model)
    if (found := policy_named(spec.policy, file, at_hand)) is not None:
        return found[0], str(found[1])
    if spec.chosen_method() is not Method.FAR_SIGHTED:
        rule = (
            "be a file that `sfumato compile` wrote: the policy of this release does not lie "
            "beside the model"
        )
        raise InvalidParameter("--policy", None, rule)
    # Whoever has model and rules alone makes the same policy from them.
    made = made_again(model, spec)
    if made is None:
        rule = (
            "be given: the release was made with another policy than model and rules make, and may "
            "lose more than it need; with the file its leakage can be checked all the same"
        )
        raise InvalidParameter("--policy", None, rule)
    return made, None


def rules_begun(ledger: str | None) -> ReleaseSpec | None:
    """The rules of a ledger that goes on; None for a new one, or none."""
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.stream.release_document import parse_spec
    from sfumato.stream.release_spec import JOB

    if ledger is None or not Path(ledger).is_file() or Path(ledger).stat().st_size == 0:
        return None
    with LedgerReader(ledger, job=JOB) as reader:
        rules = reader.front.rules
    return None if rules is None else parse_spec(rules.encode(), ledger)


def check_budget(spec: ReleaseSpec, begun: ReleaseSpec | None, ledger: str | None) -> None:
    """Refuse another budget than that of a ledger before anything is chosen after its rules.

    Raises:
        LedgerMismatch: If they differ: its policy would be said not to fit, which nobody named.
    """
    from sfumato.store.plan_rules import other_rules
    from sfumato.store.protocol import LedgerMismatch
    from sfumato.stream.release_spec import JOB

    if begun is None or ledger is None:
        return
    if any(getattr(spec, name) != getattr(begun, name) for name in _BUDGET):
        raise LedgerMismatch(f"{Path(ledger).resolve()}: {other_rules(JOB)}")
