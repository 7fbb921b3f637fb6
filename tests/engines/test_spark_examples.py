"""The examples in the docstrings of `sf.spark`, run as they stand."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import pytest

import sfumato as sf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore:PySpark does not yet")]


@pytest.mark.parametrize("name", dir(sf.spark))
def test_an_example_runs(name: str, spark: SparkSession) -> None:
    explained = getattr(sf.spark, name).__doc__
    (block,) = re.findall(r"^ *```python\n(.*?)^ *```$", explained, re.M | re.S)
    code = textwrap.dedent(block)
    assert "assert " in code
    exec(compile(code, name, "exec"), {"spark": spark})
