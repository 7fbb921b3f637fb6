import gc
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings

from sfumato.core.compile_events import eagerly
from tests import servers

settings.register_profile("ci", derandomize=True, max_examples=100, deadline=None)
# A planted bug must be found, and the smallest example of it is of no interest.
settings.register_profile(
    "mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("nightly", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Tests need no real data, and find none by chance.
os.environ.pop("SFUMATO_DATA", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among what is collected: 800,000 objects that stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


# What a test does to its process, all tests after it in the same worker would meet.
_MASK = os.umask(0o022)
os.umask(_MASK)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """A test that leaves another mask of rights fails itself, not a later one by chance."""
    yield
    left = os.umask(_MASK)  # which is the mask of before, whatever was left
    assert left == _MASK, f"the mask of rights was {_MASK:#o}, and a test left {left:#o}"


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short name: the address of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def rng() -> np.random.Generator:
    """Seeded by default; fresh entropy with TEST_SEED=fresh."""
    seed = os.environ.get("TEST_SEED", "20261115")
    return np.random.default_rng(None if seed == "fresh" else int(seed))


@pytest.fixture(autouse=True, scope="session")
def loops_are_used_for_few_rows() -> Iterator[None]:
    """What a test finds must not depend on which loops are on disk."""
    with eagerly():
        yield


# Servers that tests bring along -------------------------------------------------------------------

_RUN = pytest.StashKey[Path]()
_NOT_RUN = "not-run"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the one process that outlives the workers
        config.stash[_RUN] = servers.begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    if (folder := config.stash.get(_RUN, None)) is not None:
        servers.end_run(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a server that is not there, and write down what that was."""
    lacking = {fixture for fixture in servers.NEEDED if servers.missing(fixture)}
    without = [one for one in items if lacking & set(getattr(one, "fixturenames", ()))]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [one for one in items if one not in without]
        with (Path(os.environ[servers.FOLDER]) / _NOT_RUN).open("a") as file:
            file.writelines(f"{one.nodeid}\n" for one in without)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """One loud line for what was left out: a run without servers is no whole run."""
    told = config.stash[_RUN] / _NOT_RUN
    if told.exists():
        files = Counter(line.partition("::")[0] for line in set(told.read_text().splitlines()))
        packages = sorted({name for fixture in servers.NEEDED for name in servers.missing(fixture)})
        names = ", ".join(f"{file} ({count})" for file, count in sorted(files.items()))
        terminalreporter.write_line(
            f"NOT RUN: {files.total()} tests for want of {', '.join(packages)}: {names}", red=True
        )


@pytest.fixture(scope="session")
def postgres() -> servers.PrivatePostgres:
    """The PostgreSQL that all workers of this run share."""
    return servers.shared_postgres()


@pytest.fixture(scope="session")
def shared_database(postgres: servers.PrivatePostgres) -> Iterator[str]:
    """The URL of a database of this worker: for tests that use names of their own in it."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def database(postgres: servers.PrivatePostgres) -> Iterator[str]:
    """The URL of a database that nobody else uses."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def own_postgres() -> Iterator[servers.PrivatePostgres]:
    """A PostgreSQL that a test may stop, kill and set up anew."""
    with servers.private_postgres() as server:
        yield server


@pytest.fixture
def mosquitto() -> Iterator[servers.PrivateMosquitto]:
    """A broker that a test may stop, kill and start again."""
    with servers.private_mosquitto() as server:
        yield server
