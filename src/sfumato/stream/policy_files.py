"""From a model, a loss and a budget to a compiled policy."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable
from pathlib import Path

from sfumato.core import checks
from sfumato.core.digest import Part
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.models.stream_model import StreamModel
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy
from sfumato.solver.solving_tables import PolicyKind
from sfumato.store.files import load
from sfumato.store.kept import Kept
from sfumato.stream.compile import chosen_kind, compile_policy
from sfumato.stream.model_loss import named_batch_loss
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.named_loss import named_loss


def compile_for(
    model: StreamModel,
    spec: ReleaseSpec,
    *,
    tolerance: float = 0.005,
    max_channels: int = 2_000,
    repair_limit: float | None = None,
    steps: int | None = None,
    kind: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Policy:
    """Compile a policy for a release: an even share of its budget for every value, batch or burst.

    Args:
        model: The model of the release.
        spec: What the release will be asked to do.
        tolerance: A part of the loss that is not worth another channel.
        max_channels: Keep no more than this.
        repair_limit: By what part mixing may make a kept channel dearer before a step is solved on
            the spot; as `compile_policy` has it if not given.
        steps: Simulated steps; chosen by the size of the alphabet if not given.
        kind: `kept` or `solved`; chosen by the size of the alphabet if not given.
        progress: Told how much of how much is done.
    """
    spec.schedule()
    if spec.chosen_method() is Method.FAR_SIGHTED:
        spec.check_sight(model)
    epsilon, ldp = spec.per_step()
    width = 1 if spec.batch is None else checks.count("--batch", spec.batch)
    # A burst has its own share, whatever leaves in it, unless a batch is longer than its pause.
    share = max(1.0, width / (spec.every or 1))
    loss = named_loss if spec.batch is None else named_batch_loss
    return compile_policy(
        model.single_values,
        loss(spec.loss_for(model), model.alphabet),
        share * epsilon,
        width=width,
        every=-(-(spec.every or 1) // width),
        ldp=None if ldp is None else share * ldp,
        method=spec.chosen_method(),
        price=spec.thrift or 0.0,
        tolerance=tolerance,
        max_channels=max_channels,
        repair_limit=repair_limit,
        steps=steps,
        kind=kind,
        progress=progress,
    )


def beside_model(model: str) -> Path:
    """Where the policy of a model lies unless told otherwise."""
    return Path(model).with_suffix(".policy")


def kept_policy(
    model: StreamModel,
    spec: ReleaseSpec,
    beside: str | Path,
    make: Callable[[], Policy],
    remark: Callable[[str], None] | None = None,
) -> Policy:
    """The policy of a far-sighted release: as it was kept beside the model, or made and kept now.

    Args:
        model: The model of the release.
        spec: What the release is asked to do.
        beside: The file of the model.
        make: Compiles it, as `compile_for` does.
        remark: Told why what was kept is of no use, or nothing is kept.
    """
    chain, loss = model.single_values, named_loss(spec.loss_for(model), model.alphabet)
    if len(loss) != chain.size:
        raise InvalidParameter("loss", len(loss), f"be one for {chain.size} symbols")
    asked, method = _asked(model, spec, loss), spec.chosen_method()
    assert spec.epsilon is not None
    share = (spec.epsilon, spec.ldp, spec.thrift or 0.0)
    kind = chosen_kind(None, chain, loss, method, *share)

    def check(policy: Policy) -> None:
        if _made_for(policy) != (*asked, spec.thrift or 0.0) or policy.kind is not kind:
            raise InvalidParameter("policy", "another", "be made for this model, loss and budget")

    # Policies of kept channels have the names that they had when there were no others.
    kinds = () if kind is PolicyKind.KEPT else (kind.value,)
    place = Kept.beside(beside, "policy", *asked, spec.thrift, *kinds)
    return place.get(Policy, make, check, remark)


def _asked(model: StreamModel, spec: ReleaseSpec, loss: Loss) -> tuple[Part, ...]:
    """What a policy must have been compiled for, but for the price of a nat."""
    chain = model.single_values.fingerprint
    return (chain, loss.fingerprint, spec.chosen_method().value, spec.epsilon, spec.ldp)


def _made_for(policy: Policy) -> tuple[Part, ...]:
    """What a policy was compiled for, with the price of a nat."""
    held = (policy.chain, policy.loss, policy.method, policy.epsilon, policy.ldp)
    return (*held, 0.0 if policy.sight is None else policy.sight.price)


def compiled_policy(
    model: StreamModel, spec: ReleaseSpec, beside: str | Path
) -> tuple[Policy, Path] | None:
    """The policy that `sfumato compile` wrote beside the model, if it is for just this release.

    Args:
        model: The model of the release.
        spec: What the release is asked to do: with a cap on each value, else nothing is found.
        beside: The file of the model.
    """
    path = beside_model(str(beside))
    if spec.epsilon is None or spec.batch is not None or not path.is_file():
        return None
    loss = named_loss(spec.loss_for(model), model.alphabet)
    policy = Kept(path).read(Policy)
    fits = policy is not None and _made_for(policy) == (
        *_asked(model, spec, loss),
        spec.thrift or 0.0,
    )
    return (policy, path) if policy is not None and fits else None


def made_again(model: StreamModel, spec: ReleaseSpec) -> Policy | None:
    """The policy that rules name, compiled once more; None if model and rules make another.

    Releases of before had kept channels where a small program is solved now.
    """
    for kind in (None, PolicyKind.KEPT):
        made = compile_for(model, spec, kind=kind)
        if made.fingerprint == spec.policy:
            return made
    return None


def policy_named(
    fingerprint: str, beside: str | Path, at_hand: Iterable[str] = ()
) -> tuple[Policy, Path] | None:
    """The policy that a plan names, and the file in which it was found; None if it is in none.

    Args:
        fingerprint: That of the policy.
        beside: The file of the model; all policies that bear its name are looked at.
        at_hand: Other files to look at, before those.
    """
    model = Path(beside)
    near = sorted(model.parent.glob(f"{glob.escape(model.stem)}*.policy"))
    for path in (*map(Path, at_hand), *near):
        found = Kept(path).read(Policy)
        if found is not None and found.fingerprint == fingerprint:
            return found, path
    return None


def load_policy(path: str | Path) -> Policy:
    """Read a policy that `sfumato compile` wrote."""
    if not Path(path).is_file():
        raise InvalidParameter("--policy", str(path), "be a file that `sfumato compile` wrote")
    policy = load(path)
    if not isinstance(policy, Policy):
        raise InvalidParameter("--policy", str(path), "hold a policy; make one with `compile`")
    return policy
