"""Release the live values of people one by one, as a library: `python examples/stream.py`.

A history says how activities follow each other; each live value leaves through a channel that tells
an observer who knows that history at most 0.5 nats, and the ledger adds up what left.
"""

import csv
import tempfile
from collections import defaultdict
from pathlib import Path

import sfumato as sf


def streams(path: Path) -> dict[str, list[str]]:
    """The values of each person, in order."""
    found = defaultdict(list)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["person"]].append(row["activity"])
    return found


with tempfile.TemporaryDirectory() as folder:
    history, live = (streams(path) for path in sf.sample("activities", folder))

chain = sf.MarkovChain.fit(list(history.values()))  # what an observer is assumed to know
loss = sf.loss.hamming(chain.alphabet)  # every wrong value costs the same

person, values = next(iter(live.items()))
release = sf.InstantRelease(chain, budget=sf.SIP(0.5), loss=loss, stream=person)
private = [release(value) for value in values[:20]]

for true, left in zip(values[:5], private[:5], strict=True):
    print(f"{true:10} left as {left}")
wrong = sum(true != left for true, left in zip(values, private, strict=False))
spent = " and ".join(map(str, release.ledger.spent))
print(f"{wrong} of {len(private)} values are wrong; spent: {spent}, in nats")
