import os

import numpy as np
import pytest
from hypothesis import Phase, settings

settings.register_profile("ci", derandomize=True, max_examples=100, deadline=None)
# A planted bug must be found, and the smallest example of it is of no interest.
settings.register_profile(
    "mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("nightly", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Tests need no real data, and find none by chance.
os.environ.pop("SFUMATO_DATA", None)


@pytest.fixture
def rng() -> np.random.Generator:
    """Seeded by default; fresh entropy with TEST_SEED=fresh."""
    seed = os.environ.get("TEST_SEED", "20261115")
    return np.random.default_rng(None if seed == "fresh" else int(seed))
