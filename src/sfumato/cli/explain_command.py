"""`sfumato explain`: any file of the product in plain words."""

from __future__ import annotations

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line, print_next
from sfumato.cli.options import argument


class _ExplainOptions(options.Options):
    file: str = argument(
        "A model, set of models, policy, ledger, certificate, plan, report or commitment; a table "
        "with its plan or certificate beside it; or the home of a service.",
        "FILE",
    )
    shown: options.Shown


def explain(given: _ExplainOptions) -> None:
    """Say in plain words what a file is, and what its numbers mean for a person.

    No promise is checked: that is for `audit` and `verify`. At its end stands what to type next.

    \b
    Examples:
      sfumato explain city.model
      sfumato explain city.ledger
      sfumato explain private.csv
      sfumato explain private.csv.plan.json
      sfumato explain salaries.csv.certificate.json
      sfumato explain city-home
    """
    from sfumato.explanations.artefacts import explain as explained

    found = explained(given.file)
    if given.shown.as_json:
        print_json({"kind": found.kind, "lines": list(found.lines), "next": found.next})
        return
    article = "an" if found.kind[0] in "aeiou" else "a"
    print_line(f"{given.file}: {article} {found.kind}")
    for line in found.lines:
        print_line(line)
    print_next(found.next)
