"""Figure 2 of MDDP as a table, sentences and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sfumato.studies.curve_findings import curve_findings
from sfumato.studies.data.data_files import CARDIO
from sfumato.studies.mddp import mddp_drawings, mddp_people, tied_columns
from sfumato.studies.mddp.mddp_claims import claims
from sfumato.studies.study import Findings, Setting, Work


def prepare(setting: Setting) -> Work:
    """The four panels, on the people of the paper or on made-up ones."""
    path = setting.path(CARDIO)
    people = (
        mddp_people.simulated_people(setting.seed)
        if path is None
        else mddp_people.read_people(path)
    )
    apart = 3 if setting.quick else 1
    tied, joint = tied_columns.TIED_ACCURACIES[::apart], tied_columns.JOINT_ACCURACIES[::apart]

    def run(show: Callable[[int], None]) -> Findings:
        points = tied_columns.tied_points(people, accuracies=tied, progress=show)
        points += tied_columns.joint_points(
            people, accuracies=joint, progress=lambda done: show(len(tied) + done)
        )
        said = tied_columns.facts(people, points)
        show(len(tied) + len(joint) + 1)
        pictures = {"tied-columns": partial(mddp_drawings.draw, points, people.units)}
        by_figure = sorted(points, key=lambda point: point.figure)
        found = curve_findings(points, said, pictures, shown=by_figure)
        return replace(
            found,
            claims=claims(people, points, real=path is not None),
            stand_ins=[people.source] if path is None else [],
        )

    return Work(len(tied) + len(joint) + 1, run)
