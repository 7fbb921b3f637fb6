"""A study of nothing, for tests of what studies leave behind."""

from collections.abc import Callable
from pathlib import Path

from sfumato.core.errors import InvalidParameter
from sfumato.plots.figures import new_figure, save_figure
from sfumato.studies.study import Claim, DataFile, Findings, Setting, Study, Verdict, Work

FILE = DataFile("toys.csv.gz", "a shop's open data")
GOOD = Study("toy", "Toys | and <tags>.", "tests.studies.book.toy_study", ("SIP 5",), (FILE,))
MODULE = "tests.studies.book.toy_study"


def draw(path: Path) -> None:
    figure, axes = new_figure(3, 2)
    axes.plot([1, 2, 3])
    save_figure(figure, path)


def findings(setting: Setting) -> Findings:
    return Findings(
        title="numbers",
        columns=["name", "x"],
        rows=[["a|b", "1"], ["<i>", f"{setting.seed}"]],
        records=[{"x": 1.5}, {"x": float("inf"), "seed": setting.seed}],
        facts=["a fact with *stars*"],
        pictures={"toys": draw},
        claims=[
            Claim("SIP 5b", "a | b", "both", Verdict.AGREES),
            Claim("SIP 5", "c", "no c", Verdict.DIFFERS, "erratum 1"),
            Claim("SIP Sec. I", "elsewhere", "so", Verdict.PARTLY),
        ],
        stand_ins=["toys"] if setting.path(FILE) is None else [],
    )


def prepare(setting: Setting) -> Work:
    if setting.seed == 13:
        raise InvalidParameter("--seed", 13, "be lucky")

    def run(show: Callable[[int], None]) -> Findings:
        show(1)
        if setting.seed == 66:
            raise ZeroDivisionError("a value of a person")
        if setting.seed == 99:
            raise KeyboardInterrupt
        return findings(setting)

    return Work(1, run)
