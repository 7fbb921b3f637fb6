"""A small recurrent network that learns whose rows of numbers are: PyTorch, seeded, one thread.

Streams are cut into windows. Each is read by gated recurrent units; the mean of their states goes
through one linear layer to a score for each class. A part of what is known is kept back: the
network is remembered as it was when it told that apart best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress

_BATCH = 32
"""Windows of a step of the optimiser."""
_JUDGED = 25
"""Steps from one look at what was kept back to the next."""
_KEPT_BACK = 4
"""One value in so many is kept back."""
_DROPPED = 0.2
"""Share of what is seen that is blanked while learning, so that no single place is relied on."""


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """How a network is built and taught.

    Attributes:
        hidden: Numbers that it remembers from moment to moment.
        window: Moments that it reads at a time.
        steps: How many steps the optimiser takes, of 32 windows each.
        rate: Length of the optimiser's steps at the beginning; it falls to nothing.
        seed: Of everything that is random.

    Examples:
        >>> NetworkSpec(hidden=4, steps=100)
        NetworkSpec(hidden=4, window=50, steps=100, rate=0.005, seed=0)
    """

    hidden: int = 48
    window: int = 50
    steps: int = 1000
    rate: float = 0.005
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("hidden", "window", "steps"):
            checks.count(name, getattr(self, name))
        checks.positive("rate", self.rate)


def load_torch() -> Any:
    """PyTorch, or an error that says how to get it."""
    try:
        return import_module("torch")
    except ImportError:
        rule = 'have PyTorch to learn with: pip install "sfumato[attacks]"'
        raise InvalidParameter("network", "no PyTorch", rule) from None


@contextmanager
def _alone(torch: Any, seed: int) -> Iterator[None]:
    """One thread and coins of the seed; what others had set is set again afterwards."""
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(strict)
            torch.set_num_threads(threads)


class RecurrentNetwork:
    """Tells of which class streams are.

    Examples:
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> often, rarely = (rng.random((2, 40, 20, 1)) < [[[[0.8]]], [[[0.2]]]]) * 1.0
        >>> spec = NetworkSpec(hidden=4, window=20, steps=60)
        >>> learnt = RecurrentNetwork([*often, *rarely], [0] * 40 + [1] * 40, spec)
        >>> learnt.scores([np.ones((20, 1)), np.zeros((20, 1))]).argmax(axis=1)
        array([0, 1])
    """

    def __init__(
        self,
        streams: Sequence[Floats],
        classes: Sequence[int],
        spec: NetworkSpec | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Learn from streams.

        Args:
            streams: Rows of numbers, one a moment; all of the same width.
            classes: Of each, counted from 0.
            spec: How.
            progress: Called with the number of steps done so far.
        """
        self._torch = load_torch()
        self._spec = NetworkSpec() if spec is None else spec
        labels = np.asarray(classes, dtype=np.int64)
        if len(labels) != len(streams) or not len(labels):
            raise InvalidParameter("classes", len(labels), "be one for each stream, some at least")
        self._classes = int(labels.max()) + 1
        with _alone(self._torch, self._spec.seed):
            self._cells = self._torch.nn.GRU(
                streams[0].shape[1], self._spec.hidden, batch_first=True
            )
            self._head = self._torch.nn.Linear(self._spec.hidden, self._classes)
            self._learn(streams, labels, progress)

    def scores(self, streams: Sequence[Floats]) -> Floats:
        """How likely each stream (row) is of each class (column): logarithms, up to a constant."""
        torch, found = self._torch, np.zeros((len(streams), self._classes))
        rows, known, owners = _windows(streams, self._spec.window)
        with _alone(torch, self._spec.seed), torch.no_grad():
            for first in range(0, len(rows), 1024):
                part = slice(first, first + 1024)
                told = torch.log_softmax(self._told(rows[part], known[part]), 1)
                np.add.at(found, owners[part], told.double().numpy())
        return found

    @property
    def _layers(self) -> Any:
        return self._torch.nn.ModuleList([self._cells, self._head])

    def _told(self, rows: Floats, known: Bools) -> Any:
        torch = self._torch
        mask = torch.from_numpy(known.astype(np.float32))[:, :, None]
        states, _ = self._cells(torch.from_numpy(rows.astype(np.float32)))
        return self._head((states * mask).sum(1) / mask.sum(1).clamp(min=1.0))

    def _learn(self, streams: Sequence[Floats], labels: Ints, progress: Progress | None) -> None:
        torch, spec, layers = self._torch, self._spec, self._layers
        taught, held = _parted(streams, labels, spec.window)
        optimiser = torch.optim.Adam(layers.parameters(), lr=spec.rate, weight_decay=1e-4)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, spec.steps)
        coins, best = np.random.default_rng(spec.seed), (np.inf, layers.state_dict())
        for done in range(1, spec.steps + 1):
            rows, known, aimed = _drawn(*taught, spec.window, coins)
            rows *= coins.random(rows.shape) >= _DROPPED
            optimiser.zero_grad()
            self._missed(rows, known, aimed).backward()
            optimiser.step()
            falling.step()
            if done % _JUDGED == 0 or done == spec.steps:
                judged, known, owners = _windows(held[0], spec.window)
                with torch.no_grad():
                    missed = float(self._missed(judged, known, held[1][owners]))
                if missed < best[0]:
                    best = missed, {name: one.clone() for name, one in layers.state_dict().items()}
            if progress:
                progress(done)
        layers.load_state_dict(best[1])

    def _missed(self, rows: Floats, known: Bools, labels: Ints) -> Any:
        told, aimed = self._told(rows, known), self._torch.from_numpy(labels)
        return self._torch.nn.functional.cross_entropy(told, aimed)


def _drawn(
    streams: Sequence[Floats], labels: Ints, window: int, coins: np.random.Generator
) -> tuple[Floats, Bools, Ints]:
    """Some windows to learn from: everybody is as likely, however much is known of them."""
    classes = [np.flatnonzero(labels == one) for one in np.unique(labels)]
    chosen = [int(coins.choice(classes[int(coins.integers(len(classes)))])) for _ in range(_BATCH)]
    cut = []
    for place in chosen:
        begin = int(coins.integers(0, max(len(streams[place]) - window, 0) + 1))
        cut.append(streams[place][begin : begin + window])
    return *_padded(cut, window), labels[chosen]


def _parted(
    streams: Sequence[Floats], labels: Ints, window: int
) -> tuple[tuple[list[Floats], Ints], tuple[list[Floats], Ints]]:
    """What is learnt from, and the end of each stream, or every fourth short one, to judge by."""
    taught, held = [], []
    seen = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    for stream, label in zip(streams, labels.tolist(), strict=True):
        seen[label] += 1
        cut = len(stream) - len(stream) // _KEPT_BACK
        if len(stream) >= 2 * window:
            taught.append((stream[:cut], label))
            held.append((stream[cut:], label))
        else:
            (held if seen[label] % _KEPT_BACK == 0 else taught).append((stream, label))
    held = held or taught
    return _unzipped(taught), _unzipped(held)


def _unzipped(pairs: list[tuple[Floats, int]]) -> tuple[list[Floats], Ints]:
    return [stream for stream, _ in pairs], np.array([label for _, label in pairs])


def _windows(streams: Sequence[Floats], window: int) -> tuple[Floats, Bools, Ints]:
    """Windows of all streams, which of their moments are there, and whose they are."""
    cut = [
        (stream[first : first + window], owner)
        for owner, stream in enumerate(streams)
        for first in range(0, len(stream), window)
    ]
    return *_padded([part for part, _ in cut], window), np.array([owner for _, owner in cut])


def _padded(parts: Sequence[Floats], window: int) -> tuple[Floats, Bools]:
    rows = np.zeros((len(parts), window, parts[0].shape[1]))
    known = np.zeros((len(parts), window), dtype=np.bool_)
    for place, part in enumerate(parts):
        rows[place, : len(part)], known[place, : len(part)] = part, True
    return rows, known
