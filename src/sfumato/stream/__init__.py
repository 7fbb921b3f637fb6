"""Streams of values: release, forecast, audit (SIP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.core.account import Account as Account
    from sfumato.core.addresses import Address as Address
    from sfumato.core.addresses import Domain as Domain
    from sfumato.core.belief import Belief as Belief
    from sfumato.core.budgets import Geometric as Geometric
    from sfumato.core.bursts import Bursts as Bursts
    from sfumato.core.bursts import WindowBursts as WindowBursts
    from sfumato.core.events import Outcome as Outcome
    from sfumato.core.information_leakage import batch_leakage as batch_leakage
    from sfumato.core.information_leakage import information_leakage as information_leakage
    from sfumato.core.information_leakage import instantaneous_leakage as instantaneous_leakage
    from sfumato.core.information_leakage import sequence_leakage as sequence_leakage
    from sfumato.core.local_leakage import local_leakage as local_leakage
    from sfumato.core.periods import Period as Period
    from sfumato.core.state import StreamState as StreamState
    from sfumato.models.clustered_chain import ClusteredChain as ClusteredChain
    from sfumato.models.cycle import Cycle as Cycle
    from sfumato.models.online_learning import LearnerState as LearnerState
    from sfumato.models.pair_chain import PairChain as PairChain
    from sfumato.models.periodic import PeriodicChain as PeriodicChain
    from sfumato.models.plausible import PlausibleChains as PlausibleChains
    from sfumato.models.stream_model import StreamModel as StreamModel
    from sfumato.stream.audit import audit_table as audit_table
    from sfumato.stream.batch_widths import forecast_widths as forecast_widths
    from sfumato.stream.burst_search import best_bursts as best_bursts
    from sfumato.stream.composition import composed as composed
    from sfumato.stream.drift import DriftReport as DriftReport
    from sfumato.stream.drift import OutputOrder as OutputOrder
    from sfumato.stream.fit_model import fit_table as fit_table
    from sfumato.stream.fleet_answers import Step as Step
    from sfumato.stream.learning import Learning as Learning
    from sfumato.stream.learning import learn as learn
    from sfumato.stream.learning_audit import learnt_plan as learnt_plan
    from sfumato.stream.learning_plan import LearningPlan as LearningPlan
    from sfumato.stream.learning_rules import LearningRules as LearningRules
    from sfumato.stream.ledger_tracks import ledger_tracks as ledger_tracks
    from sfumato.stream.look_ahead import look_ahead as look_ahead
    from sfumato.stream.loss_floor import loss_floor as loss_floor
    from sfumato.stream.mixture_learning import learn_mixture as learn_mixture
    from sfumato.stream.model_versions import ModelVersion as ModelVersion
    from sfumato.stream.other_truth import OtherTruth as OtherTruth
    from sfumato.stream.other_truth import leakage_under as leakage_under
    from sfumato.stream.partition import batch_loss as batch_loss
    from sfumato.stream.price_frontier import Frontier as Frontier
    from sfumato.stream.price_frontier import frontier as frontier
    from sfumato.stream.recovered_counts import Population as Population
    from sfumato.stream.recovery import Recovery as Recovery
    from sfumato.stream.recovery import recover as recover
    from sfumato.stream.release_run import RunSpec as RunSpec
    from sfumato.stream.release_run import release_table as release_table
    from sfumato.stream.release_spec import ReleaseSpec as ReleaseSpec
    from sfumato.stream.released_tracks import read_tracks as read_tracks
    from sfumato.stream.robust_forecast import forecast_robust as forecast_robust
    from sfumato.stream.sequence_table import SequenceTable as SequenceTable
    from sfumato.stream.sequence_table import tabulate as tabulate
    from sfumato.stream.version_history import VersionHistory as VersionHistory

__getattr__, __dir__ = lazily(__name__)
