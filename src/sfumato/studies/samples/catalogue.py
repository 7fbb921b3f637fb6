"""All samples, by name."""

from __future__ import annotations

from pathlib import Path

from sfumato.core.errors import InvalidParameter
from sfumato.studies.samples.activities import ACTIVITIES
from sfumato.studies.samples.cells import CELLS
from sfumato.studies.samples.clicks import CLICKS
from sfumato.studies.samples.counts import COUNTS
from sfumato.studies.samples.existing import EXISTING
from sfumato.studies.samples.meter import METER
from sfumato.studies.samples.people import PEOPLE
from sfumato.studies.samples.sample import Sample

SAMPLES: dict[str, Sample] = {
    sample.name: sample for sample in (CELLS, ACTIVITIES, METER, CLICKS, COUNTS, PEOPLE, EXISTING)
}


def sample(name: str, folder: str | Path = ".") -> list[Path]:
    """Write made-up data to try the product on.

    Args:
        name: cells, activities, meter, clicks, counts, people or existing.
        folder: Where to; nothing that is there is overwritten.

    Returns:
        The files.

    Raises:
        InvalidParameter: If there is no such sample, or a file of it is there already.

    Examples:
        >>> [path.name for path in sample("activities", getfixture("tmp_path"))]
        ['history.csv', 'live.csv']
    """
    if name not in SAMPLES:
        raise InvalidParameter("name", name, f"be one of {', '.join(SAMPLES)}")
    return SAMPLES[name].write(Path(folder))
