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


def install(archive: Path, folder: Path) -> Path:
    """A new environment in a folder with what an archive brings; other libraries are lent.

    Returns:
        The folder of the installed packages.
    """
    venv.create(folder / "venv", with_pip=False)
    inner = folder / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", inner)
    lent = sysconfig.get_path("purelib")
    # An sdist is built here and now: by the tools that are lent, not by some from elsewhere.
    build = () if archive.suffix == ".whl" else ("--no-build-isolation",)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "lent.pth").write_text(f"{lent}\n")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", *build, archive, cwd=folder)
    return site


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment in which the wheel with loops was installed."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "hatchling", "build", "--target", "wheel", "--directory", folder)
    run(sys.executable, *build, cwd=ROOT, HATCH_BUILD_HOOK_ENABLE_CUSTOM="true")
    (wheel,) = folder.glob("sfumato-*.whl")
    tag = "cp{0}{1}-cp{0}{1}".format(*sys.version_info)
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-{tag}-{system}.whl")
    install(wheel, folder)
    return folder
