"""The catalogue of planted bugs can be read, and each still fits the sources and its tests."""

from tests.mutants import ROOT, catalogue, sources_of


def test_every_bug_can_be_planted() -> None:
    sources = sources_of(ROOT)
    misfits = {bug.name: bug.misfit(ROOT, sources) for bug in catalogue()}
    assert {name: misfit for name, misfit in misfits.items() if misfit is not None} == {}
