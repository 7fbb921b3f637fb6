"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.data import data_files as files
from sfumato.studies.study import Study

STREAM_STUDIES: tuple[Study, ...] = (
    Study(
        "headline",
        "More than twice as useful? Certified releases value by value, far-sighted and in batches "
        "beside randomised response that leaks as much, with the receiver's best guess, on people "
        "the model has not seen.",
        "sfumato.studies.streams.headline_study",
        data=(files.GAZE, files.BIKE_STATIONS, files.CLICKS, files.ACTIVITIES),
        minutes="3",
    ),
    Study(
        "stream-totals",
        "A total over a stream of real sequences: silence, evenly, bursts with N sought on the "
        "model, and every rival at its best N in hindsight, with a proven bound.",
        "sfumato.studies.streams.totals_study",
        data=(files.ACTIVITIES, files.VISITS, files.CLICKS, files.GAZE, files.BIKE_STATIONS),
        minutes="some",
    ),
    Study(
        "stream-caps",
        "A cap per step: step-wise and far-sighted, with their mean charges, on bits and real "
        "sequences.",
        "sfumato.studies.streams.caps_study",
        data=(files.ACTIVITIES, files.GAZE),
        minutes="some",
    ),
    Study(
        "greedy-release",
        "Why a greedy release wastes its budget: one sticky bit.",
        "sfumato.studies.streams.greedy_study",
        minutes="seconds",
    ),
    Study(
        "habits",
        "Do habits help? What chains of order 1 and 2 and one that changes with the hour predict "
        "of people they have not seen, and lose at the same budget: the demo's town, a household.",
        "sfumato.studies.streams.habits_study",
        data=(files.POWER,),
        minutes="some",
    ),
    Study(
        "habits-check-ins",
        "The same where people say at any hour where they are, and beside a mixture of chains.",
        "sfumato.studies.streams.check_in_study",
        data=(files.GOWALLA,),
        minutes="some",
    ),
    Study(
        "people-differ",
        "People differ: what a mixture of chains predicts of people it has not seen, and loses at "
        "the same budget, beside one chain for everybody; and what that leaks to somebody who "
        "knows more.",
        "sfumato.studies.streams.people_study",
        data=(files.ACTIVITIES, files.VISITS, files.CLICKS, files.BIKE_STATIONS),
        minutes="some",
    ),
)
