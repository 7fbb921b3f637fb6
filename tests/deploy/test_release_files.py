"""What goes with a release: how it is cited, and the hashes of what it depends on."""

import importlib.util
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def packaging(name: str) -> Any:
    """A module that is no part of the package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_cited_with_its_version_and_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    known = (ROOT / "docs" / "references.bib").read_text("utf-8")
    assert len(cited["references"]) == 5
    for paper in cited["references"]:
        assert f"title={{{paper['title']}}}" in known


CFF = {
    *("abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi"),
    *("identifiers", "keywords", "license", "license-url", "message", "preferred-citation"),
    *("references", "repository", "repository-artifact", "repository-code", "title", "type"),
    *("url", "version"),
}
"""What version 1.2.0 of the format knows."""


def test_the_citation_is_one_of_its_format() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"authors", "cff-version", "message", "title"} <= set(cited) <= CFF
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert all(isinstance(cited[name], str) for name in ("message", "title", "version"))
    for work in (cited, *cited["references"]):
        assert work["authors"] and work["type"] in ("software", "article", "conference-paper")
        for author in work["authors"]:
            assert set(author) in ({"name"}, {"family-names", "given-names"})


REPORT = {
    "environment": {
        "implementation_name": "cpython",
        "python_full_version": "3.11.7",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
    },
    "install": [
        {
            "metadata": {"name": name, "version": "1.0"},
            "download_info": {
                "url": f"https://host.example/{name}-1.0.whl",
                "archive_info": {"hashes": {"sha256": name[0] * 64}},
            },
        }
        for name in ("Zed", "alpha")
    ]
    + [
        {
            "metadata": {"name": "sfumato", "version": "0.1.0"},
            "download_info": {"url": "file:///here", "dir_info": {}},
        }
    ],
}


def test_hashes_stand_beside_names_and_no_address_does() -> None:
    lines = list(packaging("pinned_hashes").requirements(REPORT))
    assert lines == [
        "# For cpython 3.11.7 linux x86_64.",
        f"alpha==1.0 --hash=sha256:{'a' * 64}",
        f"Zed==1.0 --hash=sha256:{'Z' * 64}",
    ]


def test_a_distribution_without_a_hash_is_refused() -> None:
    report = REPORT | {
        "install": [
            {
                "metadata": {"name": "alpha", "version": "1.0"},
                "download_info": {"url": "https://host.example/a.whl", "archive_info": {}},
            }
        ]
    }
    with pytest.raises(ValueError, match=r"alpha 1\.0 must have a sha256"):
        list(packaging("pinned_hashes").requirements(report))


def test_the_changelog_says_everything_once_and_privacy_first() -> None:
    """A merge may put an entry twice, cut one in its middle, or lose a heading."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    _, *releases = text.split("\n## ")
    for release in releases:
        headings = [line for line in release.splitlines() if line.startswith("### ")]
        assert headings[0] == "### Privacy"
        assert len(set(headings)) == len(headings)
        entries = [" ".join(entry.split()) for entry in release.split("\n- ")[1:]]
        beginnings = [entry[:60] for entry in entries]
        assert len(set(beginnings)) == len(beginnings)
        for entry in entries:
            assert not entry.startswith("**Privacy")  # it has a heading
            assert entry.split(" #", 1)[0].endswith((".", ":", ")")), entry
