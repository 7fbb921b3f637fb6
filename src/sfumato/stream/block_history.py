"""Bets on blocks of context-free outputs, carried from version to version.

A block ends where a version is made, at a public count of values: all its stakes are then made of
what left before it, the chain that guides them being that of the version before. There are two
bettors on all moves: one on all streams, until any may move, and one on scouts, which never do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sfumato.models.block_bets import BlockSums, block_sums
from sfumato.models.chain_bets import FixedOutputs
from sfumato.models.markov import MarkovChain
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ContextFree

_BEFORE = 32
"""Outputs before a block that a stream's belief is made of: what was earlier tells next to nothing
of a chain that moves, and nothing rests on stakes but the width of bounds."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockBets:
    """What blocks of outputs showed since learning started.

    Attributes:
        everyone: Of all streams, as long as none may have moved; None before the first version.
        scouts: Of scouts alone.
        counted: How many context-free outputs of each stream were bet on, or stand at the end of a
            block, since learning started.
    """

    everyone: BlockSums | None = None
    scouts: BlockSums | None = None
    counted: Mapping[str, int] = field(default_factory=dict)

    def of(self, *, moved: bool) -> BlockSums | None:
        """Those that bounds come from: of all streams, or of scouts once others may have moved."""
        return self.scouts if moved else self.everyone

    def after(
        self, rules: LearningRules, left: ContextFree, guide: MarkovChain | None
    ) -> BlockBets:
        """The same with what left since the version before.

        Args:
            rules: The rules of the release.
            left: What left context-free since learning started: of all streams if none has moved,
                else of scouts.
            guide: The estimate of the version before.
        """
        names = sorted(left.outputs)
        scouts = [name for name in names if rules.is_scout(name)]
        others = [name for name in names if not rules.is_scout(name)]
        told = self._shown(rules, left, scouts, guide)
        own = told if self.scouts is None else self.scouts + told
        rest = own
        # Where nobody but scouts is left to be read, sums of all streams are of no more use.
        if others:
            told = told + self._shown(rules, left, others, guide)
            rest = told if self.everyone is None else self.everyone + told
        return BlockBets(rest, own, {name: len(left.outputs[name]) for name in names})

    def _shown(
        self,
        rules: LearningRules,
        left: ContextFree,
        names: list[str],
        guide: MarkovChain | None,
    ) -> BlockSums:
        """What blocks of some streams show that end with this version."""
        parts, skipped = [], []
        for name in names:
            done = self.counted.get(name, 0)
            begin = max(done - _BEFORE, 0)
            parts.append(np.frombuffer(left.outputs[name], dtype=np.uint8)[begin:])
            skipped.append(done - begin)
        starts = np.append(0, np.cumsum([part.size for part in parts], dtype=np.int64))
        columns = np.concatenate([np.empty(0, np.uint8), *parts]).astype(np.int64)
        outputs = FixedOutputs(rules.channel, starts, columns)
        return block_sums(outputs, guide, np.array(skipped, dtype=np.int64))
