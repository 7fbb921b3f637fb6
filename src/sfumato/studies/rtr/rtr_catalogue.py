"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.data.data_files import BIKES_DAILY, BIKES_HOURLY, FTP_75, TRAFFIC, UDDS
from sfumato.studies.study import Study

RTR_STUDIES: tuple[Study, ...] = (
    Study(
        "rtr-traffic",
        "Hourly traffic: the published rule, noise, FAST, Fourier and our filters by three "
        "yardsticks of equal privacy; Fourier with a delay; private sequences.",
        "sfumato.studies.rtr.traffic",
        figures=("RTR 4", "RTR 5", "RTR 6"),
        data=(TRAFFIC,),
        minutes="1",
    ),
    Study(
        "rtr-bikes",
        "Rented bikes by hour and by day: the same comparison, and private sequences at the "
        "paper's budgets.",
        "sfumato.studies.rtr.bike_rentals",
        figures=("RTR 15", "RTR 16", "RTR 17", "RTR 18", "RTR 19"),
        data=(BIKES_HOURLY, BIKES_DAILY),
        minutes="2",
    ),
    Study(
        "rtr-windows",
        "Budgets spread over windows (BA, BD) and the binary tree, all at user level, on traffic.",
        "sfumato.studies.rtr.window_rivals",
        figures=("RTR 7", "RTR 8"),
        data=(TRAFFIC,),
        minutes="1",
    ),
    Study(
        "rtr-drift",
        "Series that are pushed away from any mean: what that does to the rule and to filters.",
        "sfumato.studies.rtr.drifting_series",
        figures=("RTR 12", "RTR 13"),
        minutes="1",
    ),
    Study(
        "rtr-weights",
        "The weight of the published rule: correlations, learnt parameters, falling weights, and "
        "the non-linear calibration.",
        "sfumato.studies.rtr.rule_weights",
        figures=("RTR 9", "RTR 10", "RTR 11"),
        data=(TRAFFIC, BIKES_DAILY),
        minutes="1",
    ),
    Study(
        "rtr-cycle",
        "Speeds of one car at every second: private drives at two levels, and what epsilon they "
        "have.",
        "sfumato.studies.rtr.drive_cycle",
        figures=("RTR 14",),
        data=(FTP_75, UDDS),
        minutes="1",
    ),
)
