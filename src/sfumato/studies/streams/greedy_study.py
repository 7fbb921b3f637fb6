"""Why a greedy release wastes its budget, as a table, sentences and a picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sfumato.studies.streams import greedy, stream_drawings
from sfumato.studies.study import Findings, Setting, Work


def prepare(setting: Setting) -> Work:
    """One sticky bit."""

    def run(show: Callable[[int], None]) -> Findings:
        story = greedy.greedy_story(setting.seed)
        show(1)
        ways = {way.name: way for way in story.ways}
        return Findings(
            title=f"{story.total:g} nats over {greedy.VALUES} values of a bit that stays with "
            f"{greedy.STAY:g}",
            columns=["way", "share wrong", "nats spent"],
            rows=[[way.name, f"{way.loss:.3f}", f"{way.spent:.2f}"] for way in story.ways],
            records=[
                {"way": way.name, "value": moment, "wrong": wrong, "charged": charged}
                for way in story.ways
                for moment, (wrong, charged) in enumerate(
                    zip(way.losses, way.charges, strict=True), start=1
                )
            ],
            facts=[
                f"a greedy step of {story.total / greedy.VALUES:g} nats is a constant once the "
                f"rarer bit is believed in with less than {story.silent_below:.3f}: it spends "
                f"{ways['greedy'].spent:.2f} of {story.total:g} nats",
                f"bursts every {story.every} values make {ways['bursts'].loss:.3f} wrong; nothing "
                f"within the total makes less than {story.bound:.3f}",
            ],
            pictures={"moments": partial(stream_drawings.greedy, story)},
        )

    return Work(1, run)
