"""Release live, correlated data with a privacy guarantee that can be checked.

A value arrives, one private value leaves, the adversary's belief moves on, and the leakage is
known exactly. What most users need stands here; the rest is in the room of its job: `sf.stream`,
`sf.column`, `sf.record`, `sf.series`, `sf.temporal`, and `sf.solver`, `sf.store` below them;
`sf.attacks` tries to break them, and `sf.spark` runs them inside an engine. Names are loaded when
they are first used, so that importing costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato import attacks as attacks
    from sfumato import column as column
    from sfumato import record as record
    from sfumato import series as series
    from sfumato import solver as solver
    from sfumato import store as store
    from sfumato import stream as stream
    from sfumato import temporal as temporal
    from sfumato.client.async_client import AsyncClient as AsyncClient
    from sfumato.client.client import Client as Client
    from sfumato.client.wire import LiveEvent as LiveEvent
    from sfumato.column.privatize import Privatizer as Privatizer
    from sfumato.column.privatize import privatize as privatize
    from sfumato.core import loss as loss
    from sfumato.core.alphabet import Alphabet as Alphabet
    from sfumato.core.budgets import Horizon as Horizon
    from sfumato.core.budgets import PerPeriod as PerPeriod
    from sfumato.core.budgets import PerStep as PerStep
    from sfumato.core.budgets import Window as Window
    from sfumato.core.certificate import Certificate as Certificate
    from sfumato.core.channel import Channel as Channel
    from sfumato.core.errors import SfumatoError as SfumatoError
    from sfumato.core.events import Event as Event
    from sfumato.core.guarantees import LDP as LDP
    from sfumato.core.guarantees import LIP as LIP
    from sfumato.core.guarantees import SIP as SIP
    from sfumato.core.guarantees import ApproxDP as ApproxDP
    from sfumato.core.guarantees import PureDP as PureDP
    from sfumato.core.guarantees import TemporalDP as TemporalDP
    from sfumato.core.ledger import Ledger as Ledger
    from sfumato.core.purpose import Fallback as Fallback
    from sfumato.core.purpose import Purpose as Purpose
    from sfumato.core.randomness import keyed as keyed
    from sfumato.core.randomness import secure as secure
    from sfumato.core.randomness import seeded as seeded
    from sfumato.engines import spark as spark
    from sfumato.explanations.artefacts import explain as explain
    from sfumato.models.library import PatternLibrary as PatternLibrary
    from sfumato.models.markov import MarkovChain as MarkovChain
    from sfumato.models.prior import Prior as Prior
    from sfumato.record.disclosure import disclosure as disclosure
    from sfumato.record.publish import publish as publish
    from sfumato.series.filter_banks import seasonal as seasonal
    from sfumato.series.realtime import Realtime as Realtime
    from sfumato.series.series_compare import compare as compare
    from sfumato.series.series_release import Unit as Unit
    from sfumato.solver.design_methods import Method as Method
    from sfumato.solver.policy import Policy as Policy
    from sfumato.store.files import load as load
    from sfumato.store.files import save as save
    from sfumato.stream.compile import compile_policy as compile_policy
    from sfumato.stream.drift import drift_test as drift_test
    from sfumato.stream.fleet import Fleet as Fleet
    from sfumato.stream.learning_release import LearningRelease as LearningRelease
    from sfumato.stream.plan import Plan as Plan
    from sfumato.stream.release import BatchedRelease as BatchedRelease
    from sfumato.stream.release import InstantRelease as InstantRelease
    from sfumato.studies.samples.catalogue import sample as sample

__getattr__, __dir__ = lazily(__name__)
