"""The public surface: what stands at the top, what in the rooms, and that it is explained."""

import inspect
import subprocess
import sys
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import get_origin

import pytest

import sfumato
from sfumato.core.lazy import listed_names

ROOMS = (
    *("attacks", "client", "column", "engines.spark", "record", "series", "solver", "store"),
    *("stream", "temporal"),
)
PACKAGES = ("sfumato", *(f"sfumato.{room}" for room in ROOMS))
NAMES = [(package, name) for package in PACKAGES for name in import_module(package).__all__]

TOP = [
    "Alphabet",
    "ApproxDP",
    "AsyncClient",
    "BatchedRelease",
    "Certificate",
    "Channel",
    "Client",
    "Event",
    "Fallback",
    "Fleet",
    "Horizon",
    "InstantRelease",
    "LDP",
    "LIP",
    "LearningRelease",
    "Ledger",
    "LiveEvent",
    "MarkovChain",
    "Method",
    "PatternLibrary",
    "PerPeriod",
    "PerStep",
    "Plan",
    "Policy",
    "Prior",
    "Privatizer",
    "PureDP",
    "Purpose",
    "Realtime",
    "SIP",
    "SfumatoError",
    "TemporalDP",
    "Unit",
    "Window",
    "attacks",
    "column",
    "compare",
    "compile_policy",
    "disclosure",
    "drift_test",
    "explain",
    "keyed",
    "load",
    "loss",
    "privatize",
    "publish",
    "record",
    "sample",
    "save",
    "seasonal",
    "secure",
    "seeded",
    "series",
    "solver",
    "spark",
    "store",
    "stream",
    "temporal",
]
IN_ROOMS = {
    "attacks": """BlackBox LowerBound MechanismAudit NetworkInput NetworkSpec
        Notion Reidentification SeriesAttack TableAttack TrackAttack WeightAttack
        WorstOutputs attack_table attack_tracks audit_mechanism realised_gains
        reconstruct_by_particles reconstruct_private_weight reconstruct_series
        recovered_measurements reidentify reidentify_by_network reidentify_raw
        reidentify_raw_by_network worst_outputs""",
    "client": """AsyncClient AsyncSession Client GivenAnswer LiveEvent Patience Problem Reply
        ServiceRefused ServiceUnavailable Session""",
    "column": """ColumnSpec FeaturePrior GaussianMixture PriorBall PriorBox PriorList
        bounded_leakage bounded_prior recover_column""",
    "engines.spark": """SparkAudit SparkLearning SparkRecovery audit dead_letters fit learn
        recover release release_stream""",
    "record": "Disclosure FullCoupling JointMixture RecordSpec",
    "series": "SeriesSpec release_series series_method smooth_series",
    "solver": """Design calibrated_randomized_response certified context_free least_leakage
        optimal paper_response randomized_response""",
    "store": """Catalogue FolderHome Home HomeAnchor HomeFiles MemoryHome Registry backup_home
        check_anchor check_home from_bytes open_home restore_home to_bytes""",
    "stream": """Account Address Belief Bursts ClusteredChain Cycle Domain DriftReport Frontier
        Geometric LearnerState Learning LearningPlan LearningRules ModelVersion OtherTruth Outcome
        OutputOrder PairChain Period PeriodicChain PlausibleChains Population Recovery ReleaseSpec
        RunSpec SequenceTable Step StreamModel StreamState VersionHistory WindowBursts
        audit_table batch_leakage batch_loss best_bursts composed fit_table forecast_robust
        forecast_widths frontier information_leakage instantaneous_leakage leakage_under learn
        learn_mixture learnt_plan ledger_tracks local_leakage look_ahead loss_floor read_tracks
        recover release_table sequence_leakage tabulate""",
    "temporal": """Allocation Answer Counts EventColumns Histogram LossFunction Measurement
        OwnMatrices TemporalPlan TemporalRelease TemporalSpec allocate audit_streams chain_leakage
        least_noise_budgets release_streams temporal_leakage""",
}


def in_a_fresh_interpreter(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_surface_changes_on_purpose_only() -> None:
    assert sfumato.__all__ == sorted(TOP)
    assert {room: names.split() for room, names in IN_ROOMS.items()} == {
        room: import_module(f"sfumato.{room}").__all__ for room in ROOMS
    }


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_can_be_used_and_is_explained(package: str, name: str) -> None:
    thing = getattr(import_module(package), name)
    home = listed_names(package)[name]
    if not isinstance(thing, ModuleType) and get_origin(thing) is None:
        assert thing is getattr(import_module(home), name)
        assert thing.__module__ == home
    explanation = thing.__doc__ or ""
    assert len(explanation.strip()) > 20
    if inspect.isclass(thing) and not issubclass(thing, Enum):
        # A dataclass without a docstring gets its signature as one.
        assert not explanation.startswith(f"{name}(")


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_method_is_explained(package: str, name: str) -> None:
    thing = getattr(import_module(package), name)
    if not inspect.isclass(thing):
        return
    for member, made in vars(thing).items():
        explained = isinstance(made, property | classmethod | staticmethod)
        if not member.startswith("_") and (explained or inspect.isfunction(made)):
            assert inspect.getdoc(getattr(thing, member)), f"{name}.{member}"


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_has_an_example_that_is_run(package: str, name: str) -> None:
    thing = getattr(import_module(package), name)
    if isinstance(thing, ModuleType) or get_origin(thing) is not None:
        return  # a room, whose names have theirs
    example = ">>> "
    if thing.__module__.startswith("sfumato.engines."):
        example = "```python\n"  # run where the engine is: tests/engines/test_spark_examples.py
    assert example in (thing.__doc__ or ""), f"{thing.__module__}.{name}"


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_listed_for_completion_and_others_are_refused(package: str) -> None:
    module = import_module(package)
    assert dir(module) == module.__all__
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Sfumato'"):
        module.Sfumato  # noqa: B018


def test_rooms_are_reached_from_the_top_whatever_was_loaded_before() -> None:
    program = (
        "import sfumato as sf, sfumato.record.disclosure, sfumato.stream.forecast; "
        "print(callable(sf.disclosure), sf.stream.Step.__name__, sf.temporal.allocate.__name__)"
    )
    assert in_a_fresh_interpreter(program) == "True Step allocate"


def test_a_star_import_brings_the_public_names_and_no_more() -> None:
    program = (
        "before = set(dir()); from sfumato import *; "
        "print(*sorted(set(dir()) - before - {'before'}))"
    )
    assert in_a_fresh_interpreter(program).split() == sorted(dir(sfumato))


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_a_name_is_the_same_when_its_module_is_loaded(package: str, name: str) -> None:
    """A module may be called like what it holds, and must not take its place."""
    room, home = import_module(package), listed_names(package)[name]
    first = getattr(room, name)
    import_module(home)
    assert getattr(room, name) is first
    if home == f"{package}.{name}":
        setattr(room, name, import_module(home))  # as the loader does, in a new process
        assert getattr(room, name) is first
