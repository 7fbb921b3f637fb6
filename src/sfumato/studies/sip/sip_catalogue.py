"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.data import data_files
from sfumato.studies.study import Study

SIP_STUDIES: tuple[Study, ...] = (
    Study(
        "sip-table-1",
        "Table I: what each notion promises, and the time that a value takes as the alphabet, the "
        "order, the batch and the sequence grow, as ratios measured in one run.",
        "sfumato.studies.sip.sip_table_1",
        figures=("SIP Table I",),
        minutes="1",
    ),
    Study(
        "sip-figures-3-4",
        "Two correlated bits: correlation of their noises, noise at time 2 and least leakage, by "
        "the published rule and by the certified optimum.",
        "sfumato.studies.sip.sip_figures_3_4",
        figures=("SIP 3", "SIP 4"),
        minutes="1",
    ),
    Study(
        "sip-figure-5",
        "Loss against leakage on a binary chain: value by value, step-wise and far-sighted, in "
        "batches of 2, 3 and 5, randomised response, the published rule, and a proven bound.",
        "sfumato.studies.sip.sip_figure_5",
        figures=("SIP 5",),
        minutes="1",
    ),
    Study(
        "sip-figure-6",
        "Click streams: loss against true leakage of randomised response, ToPL, temporal LDP, and "
        "certified releases value by value, far-sighted and in batches of 2, 3 and 5.",
        "sfumato.studies.sip.sip_figure_6",
        figures=("SIP 6",),
        data=(data_files.CLICKS,),
        minutes="4",
    ),
    Study(
        "sip-figure-7",
        "Where somebody looked: as recorded, and as released by randomised response, value by "
        "value, far-sighted and in batches of ten, ten nats a second.",
        "sfumato.studies.sip.sip_figure_7",
        figures=("SIP 7",),
        data=(data_files.GAZE,),
        minutes="1",
    ),
    Study(
        "sip-figure-9",
        "Gaze: mean distance between what was seen and what is released, against true leakage, "
        "under chains of order 1 and 2.",
        "sfumato.studies.sip.sip_figure_9",
        figures=("SIP 9",),
        data=(data_files.GAZE,),
        minutes="6",
    ),
    Study(
        "sip-figure-8",
        "Whose gaze it is: re-identification by the exact likelihood and by a recurrent network, "
        "with and without the chain, in true values and in LDP, temporal LDP, "
        "instantaneous, batched and far-sighted releases, orders 1 and 2 (needs sfumato[attacks]).",
        "sfumato.studies.sip.sip_figure_8",
        figures=("SIP 8",),
        data=(data_files.GAZE,),
        minutes="7",
    ),
)
