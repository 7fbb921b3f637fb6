"""No file that is kept names a host that something could be fetched from."""

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path

from tests.deploy.conftest import ROOT

HOST = re.compile(r"\b(?:[a-z0-9-]+\.)+(?:io|org|com|net|dev)\b", re.I)
IMAGE = re.compile(r"^(?:FROM\s+|\s*image:\s+)([\w./:-]+)(?:\s+AS\s+\w+)?$", re.M)
FETCHING = re.compile(r"(?:index-url|trusted-host|find-links|index_url)", re.I)
NAMES = {
    "www.apache.org": "of the licence",
    "www.w3.org": "of the form of a picture",
    "github.com": "who wrote a library that the dashboard brings along",
    "example.org": "nobody's",
    "msnbc.com": "a data set",
    "spark.io": "the beginning of names of settings",
}
"""Names that stand somewhere, and what they are: nothing is fetched from them."""


def kept() -> Iterator[Path]:
    """Every file of the project, without what is made."""
    made = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()]
    folders = [ROOT]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            if path.name == ".git" or any(fnmatch.fnmatch(path.name, each) for each in made):
                continue
            if path.is_dir():
                folders.append(path)
            elif b"\0" not in (content := path.read_bytes())[:8000] and content:
                yield path


def hosts(text: str) -> set[str]:
    """Names of hosts, and whatever says where packages or images come from."""
    images = {image for image in IMAGE.findall(text) if "." in image.rpartition("/")[0]}
    return {found.lower() for found in HOST.findall(text)} | images | set(FETCHING.findall(text))


def test_no_file_names_a_host_to_fetch_from() -> None:
    files = list(kept())
    assert len(files) > 1000
    own = Path(__file__)
    found = {
        str(path.relative_to(ROOT)): bad
        for path in files
        if path != own and (bad := hosts(path.read_text("utf-8", "replace")) - set(NAMES))
    }
    assert found == {}


def test_a_host_is_found_wherever_it_stands() -> None:
    for text in (
        "https://packages.example.com/simple",
        "FROM images.example.io/library/python:3",
        "    image: localhost.localdomain/python:3",
        "pip install --index-url file:///x",
    ):
        assert hosts(text) - set(NAMES), text
    assert hosts("FROM python:3.11-slim AS build\nimage: postgres:15\nprior.cloud") == set()
