"""Models and policies on disk: written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from sfumato.codec import MAGIC, decode, to_bytes
from sfumato.design.policy import Policy
from sfumato.errors import CorruptData
from sfumato.models.encoding import StreamModel
from sfumato.models.markov import MarkovChain
from sfumato.models.prior import Prior
from sfumato.outputs import locked, together, whole, write_whole

__all__ = ["AnyModel", "load", "locked", "save", "together", "whole", "write_whole"]

AnyModel = Prior | MarkovChain | StreamModel | Policy


def save(model: AnyModel, path: str | Path) -> None:
    """Write a model or a policy to a file, which appears only when it is complete.

    Examples:
        >>> folder = getfixture("tmp_path")
        >>> save(Prior([0.7, 0.3]), folder / "coin.model")
        >>> load(folder / "coin.model")
        Prior(probabilities=array([0.7, 0.3]), alphabet=...)
    """
    write_whole(path, to_bytes(model))


def load(path: str | Path) -> AnyModel:
    """Read what `save` wrote.

    Raises:
        CorruptData: If the file is neither, is damaged or comes from another version.
    """
    try:
        with Path(path).open("rb") as file:
            # A file of another kind, which may be long, is known by its first bytes.
            start = file.read(len(MAGIC))
            model = decode(start + file.read() if start == MAGIC else start)
    except CorruptData as problem:
        raise CorruptData(f"{path}: {problem}") from problem
    if not isinstance(model, AnyModel):
        raise CorruptData(
            f"{path}: stored data must be a model or a policy; got {type(model).__name__}"
        )
    return model
