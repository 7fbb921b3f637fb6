"""What tells a machine that rounds otherwise from one that was lied to."""

import os
import subprocess
import sys
from unittest import mock

import numpy as np

from sfumato.core import arithmetic, portable
from tests.portability.environments import OTHERWISE


def test_this_machine_and_a_pretended_one_compute_as_tested() -> None:
    assert arithmetic.as_tested()
    script = "from sfumato.core.arithmetic import as_tested; print(as_tested())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **OTHERWISE}
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.strip() == "True"


def test_one_bit_in_one_function_is_noticed() -> None:
    exact = portable.log

    def off(values: object) -> object:
        found = np.array(exact(values))  # type: ignore[call-overload]
        found[17] = np.nextafter(found[17], np.inf)
        return found

    with mock.patch.object(portable, "log", off):
        assert not arithmetic.as_tested()
