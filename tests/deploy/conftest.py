"""A wheel that is built once, and an environment in which it is installed."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_CHOICES = ("SFUMATO_", "NUMBA_")


def surroundings(**more: str) -> dict[str, str]:
    """An environment without anybody's own folder of loops, nor another processor than this one."""
    return {name: os.environ[name] for name in os.environ if not name.startswith(_CHOICES)} | more


def run(*words: object, cwd: Path, **environment: str) -> None:
    told = [str(word) for word in words]
    subprocess.run(told, check=True, cwd=cwd, env=surroundings(**environment))


def install(archive: Path, folder: Path, extras: str = "") -> Path:
    """A new environment in a folder, with an archive and what it declares to need, from the index.

    Nothing is lent from the environment of the tests: a library that is not declared is missing.

    Returns:
        The folder of the installed packages.
    """
    venv.create(folder / "venv", with_pip=True)
    pip = (folder / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    asked = f"{archive}[{extras}]" if extras else archive
    pinned = ("--constraint", ROOT / "constraints.txt")
    run(*pip, "install", "--quiet", *pinned, asked, cwd=folder, PYTHONPATH="")
    run(*pip, "check", cwd=folder, PYTHONPATH="")
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    return site


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with loops, built once."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "hatchling", "build", "--target", "wheel", "--directory", folder)
    run(sys.executable, *build, cwd=ROOT, HATCH_BUILD_HOOK_ENABLE_CUSTOM="true")
    (found,) = folder.glob("sfumato-*.whl")
    tag = "cp{0}{1}-cp{0}{1}".format(*sys.version_info)
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert found.name.endswith(f"-{tag}-{system}.whl")
    return found


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment in which the wheel was installed, without extras."""
    folder = tmp_path_factory.mktemp("installed")
    install(wheel, folder)
    return folder


@pytest.fixture(scope="session")
def with_extras(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the extras that guides need."""
    folder = tmp_path_factory.mktemp("extras")
    install(wheel, folder, "client,mqtt,postgres,service")
    return folder
