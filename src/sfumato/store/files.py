"""Models and policies on disk: written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.core.errors import CorruptData
from sfumato.core.state import SeriesState
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.prior import Prior
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.store.codec import MAGIC, from_bytes, to_bytes
from sfumato.store.outputs import locked, together, whole, write_whole

__all__ = [
    "AnyModel",
    "load",
    "load_any",
    "load_plausible",
    "load_state",
    "locked",
    "save",
    "save_plausible",
    "together",
    "whole",
    "write_whole",
]

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

    Examples:
        >>> folder = getfixture("tmp_path")
        >>> save(Prior([0.7, 0.3]), folder / "coin.model")
        >>> load(folder / "coin.model").probabilities
        array([0.7, 0.3])
    """
    model: AnyModel = load_stored(path, AnyModel)
    return model


def load_any(path: str | Path) -> AnyModel | PlausibleChains:
    """Read what `save` or `save_plausible` wrote, whichever it was.

    Raises:
        CorruptData: If the file is neither, is damaged or comes from another version.

    Examples:
        >>> path = getfixture("tmp_path") / "coin.model"
        >>> save(Prior([0.7, 0.3]), path)
        >>> load_any(path)
        Prior(probabilities=array([0.7, 0.3]), alphabet=...)
    """
    stored: AnyModel | PlausibleChains = load_stored(path, AnyModel | PlausibleChains)
    return stored


def load_state(path: str | Path) -> SeriesState:
    """Read a stored state of a series.

    Raises:
        CorruptData: If the file is none, is damaged or comes from another version.
    """
    state: SeriesState = load_stored(path, SeriesState)
    return state


def save_plausible(chains: PlausibleChains, path: str | Path) -> None:
    """Write a set of plausible chains to a file."""
    write_whole(path, to_bytes(chains))


def load_plausible(path: str | Path) -> PlausibleChains:
    """Read what `save_plausible` wrote.

    Raises:
        CorruptData: If the file is none, is damaged or comes from another version.

    Examples:
        >>> folder = getfixture("tmp_path")
        >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> save_plausible(PlausibleChains.from_radius(sticky, 0.05), folder / "near.set")
        >>> load_plausible(folder / "near.set").contains(sticky)
        True
    """
    chains: PlausibleChains = load_stored(path, PlausibleChains)
    return chains


def load_stored(path: str | Path, kind: Any) -> Any:
    """Read a stored value of one of some kinds; a file of another kind is not read to its end.

    Raises:
        CorruptData: If the file is none, is damaged or comes from another version.
    """
    try:
        with Path(path).open("rb") as file:
            # A file of another kind, which may be long, is known by its first bytes.
            start = file.read(len(MAGIC))
            return from_bytes(start + file.read() if start == MAGIC else start, kind)
    except CorruptData as problem:
        raise CorruptData(f"{path}: {problem}") from problem
