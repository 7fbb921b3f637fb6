from collections import defaultdict
from pathlib import Path

import pytest

from sfumato.store.memory import MemoryLedger, MemoryStore
from sfumato.store.protocol import Job, Store
from tests.contracts.store_laws import HeldStoreLaws


class TestMemoryStore(HeldStoreLaws):
    @pytest.fixture(autouse=True)
    def ledgers(self) -> None:
        """What lies at each place."""
        self.places: dict[Path, MemoryLedger] = defaultdict(MemoryLedger)

    def opened(self, place: Path, plan: str, job: Job) -> Store:
        return MemoryStore(self.places[place], plan=plan, job=job)
