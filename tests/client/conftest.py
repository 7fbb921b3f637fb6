from collections.abc import Iterator

import pytest

from tests.client.fake_service import FakeService, running


@pytest.fixture(scope="session")
def started() -> Iterator[tuple[FakeService, int]]:
    """One server for all tests: to start and stop it takes longer than most of them."""
    service = FakeService()
    with running(service) as port:
        yield service, port


@pytest.fixture
def service(started: tuple[FakeService, int]) -> FakeService:
    found, _ = started
    found.forget()
    return found


@pytest.fixture
def port(started: tuple[FakeService, int], service: FakeService) -> int:
    return started[1]


@pytest.fixture
def url(port: int) -> str:
    return f"http://127.0.0.1:{port}"
