from pathlib import Path

import pytest

from sfumato.store.keys import new_key
from sfumato.store.postgres import open_postgres
from sfumato.store.protocol import Job, Store
from tests.contracts.store_laws import SharedStoreLaws


class TestPostgresStore(SharedStoreLaws):
    @pytest.fixture(autouse=True)
    def node(self, shared_database: str, tmp_path: Path) -> None:
        """What every node is told: where the database is, and the secret."""
        self.url, self.secret = shared_database, tmp_path / "values.key"
        new_key(self.secret)

    def opened(self, place: Path, plan: str, job: Job) -> Store:
        return open_postgres(self.url, str(place), plan, job=job, rules=None, secret=self.secret)
