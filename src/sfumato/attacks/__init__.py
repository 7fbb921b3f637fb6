"""Attackers who see released data and public knowledge alone: lower bounds on what leaks.

The names of the room, loaded when they are first used:

>>> import sfumato as sf
>>> print(sf.attacks.LowerBound(0.7, sf.attacks.Notion.SIP))
SIP leakage at least 0.7
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.attacks.black_box import BlackBox as BlackBox
    from sfumato.attacks.information_gain import realised_gains as realised_gains
    from sfumato.attacks.lower_bound import LowerBound as LowerBound
    from sfumato.attacks.lower_bound import Notion as Notion
    from sfumato.attacks.measurement_recovery import (
        recovered_measurements as recovered_measurements,
    )
    from sfumato.attacks.mechanism_audit import MechanismAudit as MechanismAudit
    from sfumato.attacks.mechanism_audit import audit_mechanism as audit_mechanism
    from sfumato.attacks.network_attack import reidentify_by_network as reidentify_by_network
    from sfumato.attacks.network_attack import (
        reidentify_raw_by_network as reidentify_raw_by_network,
    )
    from sfumato.attacks.network_input import NetworkInput as NetworkInput
    from sfumato.attacks.particle_attack import (
        reconstruct_by_particles as reconstruct_by_particles,
    )
    from sfumato.attacks.recurrent_network import NetworkSpec as NetworkSpec
    from sfumato.attacks.reidentification import Reidentification as Reidentification
    from sfumato.attacks.reidentification import reidentify as reidentify
    from sfumato.attacks.reidentification import reidentify_raw as reidentify_raw
    from sfumato.attacks.series_attack import SeriesAttack as SeriesAttack
    from sfumato.attacks.series_attack import reconstruct_series as reconstruct_series
    from sfumato.attacks.table_attack import TableAttack as TableAttack
    from sfumato.attacks.table_attack import attack_table as attack_table
    from sfumato.attacks.track_attack import TrackAttack as TrackAttack
    from sfumato.attacks.track_attack import attack_tracks as attack_tracks
    from sfumato.attacks.weight_attack import WeightAttack as WeightAttack
    from sfumato.attacks.weight_attack import (
        reconstruct_private_weight as reconstruct_private_weight,
    )
    from sfumato.attacks.worst_outputs import WorstOutputs as WorstOutputs
    from sfumato.attacks.worst_outputs import worst_outputs as worst_outputs

__getattr__, __dir__ = lazily(__name__)
