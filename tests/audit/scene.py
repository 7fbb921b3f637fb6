"""A release with everything beside it, and the means to tamper with each part."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from sfumato.core.alphabet import Label
from sfumato.core.events import Outcome
from sfumato.core.state import StreamState
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.store.attestation import program
from sfumato.store.files import load
from sfumato.stream.release_document import document
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.seal import Seal, sealed
from tests.audit.releasers import Cheat
from tests.shell.releasing import write_rules
from tests.shell.running import Result, call, done
from tests.shell.tables import read, table

COMPILED = 0.8
"""What a value may leak under the policies of scenes."""
HEADER = ["person", "sequence", "released", "outcome", "sip", "ldp"]


class Level(Enum):
    """Who can find something: from output, model and plan; with the raw data; with a key."""

    ANYONE = "anyone"
    LEDGER = "holder of the ledger"
    RAW_DATA = "holder of the raw data"
    COMMITMENT = "holder of a commitment"


@dataclass(frozen=True)
class Scene:
    """A folder with live values, a model and what was released.

    Attributes:
        folder: Where all of it lies.
        output: Name of the released file.
        compiled: Whether it was released under a policy.
    """

    folder: Path
    output: str = "private.csv"
    compiled: bool = False

    @property
    def policy(self) -> Policy | None:
        """The compiled policy, of a release that had one."""
        found = load(self.folder / "city.policy") if self.compiled else None
        assert found is None or isinstance(found, Policy)
        return found

    @property
    def model(self) -> Path:
        """The public model."""
        return self.folder / "city.model"

    @property
    def live(self) -> Path:
        """The true values."""
        return self.folder / "live.csv"

    @property
    def private(self) -> Path:
        """What was released."""
        return self.folder / self.output

    @property
    def rules(self) -> Path:
        """The plan beside it."""
        return self.folder / f"{self.output}.plan.json"

    @property
    def ledger(self) -> Path:
        """The ledger, of a release that kept one."""
        return self.folder / "city.ledger"

    def audit(self, *more: object) -> Result:
        """What an audit says."""
        return call("audit", self.private, "-m", self.model, *more)

    def release(self, *rule: object) -> None:
        """Release the live values by the program itself."""
        done("release", self.live, "-m", self.model, *rule, "-o", self.private)

    # Tampering -----------------------------------------------------------------------------------

    def bytes(self, change: Callable[[bytes], bytes], *, seal: bool = True) -> None:
        """Change the file, and let the seal fit it again."""
        self.private.write_bytes(change(self.private.read_bytes()))
        if seal:
            self.seal()

    def cells(self, change: Callable[[list[list[str]]], list[list[str]]]) -> None:
        """Change rows of a CSV file, the header first, and write it as the release would."""
        rows = change(list(csv.reader(self.private.read_text().splitlines())))
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self.private.write_text(text.getvalue())
        self.seal()

    def cell(self, row: int, column: str, change: Callable[[str], str]) -> None:
        """Change one cell; rows are counted from 1."""

        def changed(rows: list[list[str]]) -> list[list[str]]:
            place = rows[0].index(column)
            rows[row][place] = change(rows[row][place])
            return rows

        self.cells(changed)

    def plan(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the rules."""
        rules = json.loads(self.rules.read_text())
        change(rules)
        write_rules(self.rules, rules)

    def seal(self) -> None:
        """Let the rules say that the file was written as it is now."""
        try:
            records = read(self.private)
        except (KeyError, ValueError):
            return
        owners = {str(record.get("person")) for record in records}
        digest = hashlib.sha256(self.private.read_bytes()).hexdigest()
        seal = {"rows": len(records), "streams": len(owners), "sha256": digest}
        self.plan(lambda rules: rules["sealed"].update(seal))

    def copied(self, folder: Path) -> Scene:
        """The same in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Scene(folder, self.output, self.compiled)

    # Releasers that lie about their coins --------------------------------------------------------

    def cheat(
        self,
        spec: ReleaseSpec,
        way: Cheat,
        share: float = 1.0,
        *,
        withhold: Callable[[str], bool] = lambda value: False,
        only: Callable[[str, str], bool] = lambda person, value: True,
        seed: int = 0,
    ) -> None:
        """Release the live values with right certificates and unfair coins.

        Args:
            spec: What the plan says.
            way: What leaves instead of a fair draw.
            share: In what part of the rows.
            withhold: Of which values nothing leaves, though the model knows them.
            only: Of whom and which values it cheats at all.
            seed: Of all coins.
        """
        model = load(self.model)
        assert isinstance(model, StreamModel)
        policy = self.policy
        if policy is not None and spec.purpose == "release" and spec.epsilon == COMPILED:
            spec = msgspec.structs.replace(spec, policy=policy.fingerprint)
        else:
            policy = None
        plan, rng = spec.plan(model, policy), np.random.default_rng(seed)
        loss, labels = plan.value_loss, model.alphabet.labels
        assert loss is not None
        states: dict[str, StreamState] = {}
        out = [HEADER]
        for record in read(self.live):
            person, value = str(record["person"]), record["place"]
            state = states.get(person) or plan.begin(person)
            place = model.alphabet.place(value)
            found = plan.prepare(state, 1)
            assert found is not None
            channel = found.design.channel
            fair = channel.probabilities[max(place, 0)]
            losses = loss.rows([max(place, 0)])[0][channel.outputs]
            left = int(rng.choice(fair.size, p=fair))
            if rng.random() < share and only(person, value):
                left = way(fair, losses, left, rng)
            said: Label | None = labels[channel.outputs[left]]
            outcome = Outcome.RELEASED
            if withhold(value):
                said, outcome = None, Outcome.SUPPRESSED
                if spec.missing == "skip":
                    outcome = Outcome.SKIPPED
                elif spec.when_unknown == "repeat" and state.last is not None:
                    said, outcome = labels[state.last], Outcome.REPEATED
            (event,), states[person] = plan.observe(state, [said], outcome)
            cells = [person, event.sequence, "" if said is None else said, outcome.value]
            out.append([*map(str, cells), str(event.sip.epsilon), str(event.ldp.epsilon)])
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(out)
        self.private.write_text(text.getvalue())
        seal = Seal(rows=0, streams=0, sha256="", program=program())
        self.rules.write_bytes(sealed(document(spec, model), seal))
        self.seal()


def live_table(folder: Path, records: list[tuple[str, str]]) -> Path:
    """The true values of a scene."""
    return table(folder / "live.csv", records)
