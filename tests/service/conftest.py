from pathlib import Path

import pytest

from tests.service.nodes import town_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model, fitted once: for real servers."""
    return town_model(tmp_path_factory.mktemp("town"))
