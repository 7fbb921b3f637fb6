"""Models and policies on disk: written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sfumato.codec import decode, to_bytes
from sfumato.design.policy import Policy
from sfumato.errors import CorruptData, InvalidParameter
from sfumato.models.encoding import StreamModel
from sfumato.models.markov import MarkovChain
from sfumato.models.prior import Prior

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
        model = decode(Path(path).read_bytes())
    except CorruptData as problem:
        raise CorruptData(f"{path}: {problem}") from problem
    if not isinstance(model, AnyModel):
        raise CorruptData(
            f"{path}: stored data must be a model or a policy; got {type(model).__name__}"
        )
    return model


def write_whole(path: str | Path, data: bytes) -> None:
    """Replace a file by new content in one step, on disk before the name points to it."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidParameter("path", str(path), "name a file in a folder that exists")
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
