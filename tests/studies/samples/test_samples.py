"""Samples are the same everywhere, overwrite nothing, and their commands do what they say."""

import csv
import hashlib
import shlex
from pathlib import Path

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.studies.samples.catalogue import SAMPLES, sample
from tests.shell.running import call, done

DIGESTS = {
    "cells": "386831ca60ada158",
    "activities": "a93fc0f3d2bcf15a",
    "meter": "d141e42d0dee3c57",
    "clicks": "e449e0929c2b06e0",
    "counts": "5b307b381cf3fe21",
    "people": "6fa2fca27bb98ab4",
    "existing": "632d2f70307c6d1d",
}
"""Pages show what commands say of these bytes."""


def digest(paths: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_the_same_everywhere(name: str, tmp_path: Path) -> None:
    paths = sample(name, tmp_path)
    assert digest(paths) == DIGESTS[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_row_has_the_columns_of_the_header(name: str, tmp_path: Path) -> None:
    for path in sample(name, tmp_path):
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert rows
        assert {len(row) for row in rows} == {len(header)}
        assert all(cell for row in rows for cell in row)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    theirs = tmp_path / "live.csv"
    theirs.write_text("mine")
    with pytest.raises(InvalidParameter, match="overwrites nothing"):
        sample("clicks", tmp_path)
    assert theirs.read_text() == "mine"
    assert not (tmp_path / "history.csv").exists()


def test_an_unknown_sample_is_told_the_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="cells, activities"):
        sample("weather", tmp_path)


def test_a_sample_says_what_to_try(tmp_path: Path) -> None:
    told = done("sample", "clicks", "-o", tmp_path / "try")
    assert f"cd {tmp_path / 'try'}" in told.out
    again = call("sample", "clicks", "-o", tmp_path / "try")
    assert again.code == 2
    listed = done("sample", "--json").document["samples"]
    assert list(listed) == list(SAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_to_be_tried_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in SAMPLES[name].commands:
        program, *arguments = shlex.split(command)
        assert program == "sfumato"
        done(*arguments)
