"""`sfumato explain`: any file of the product in plain words."""

from __future__ import annotations

from sfumato.cli import options
from sfumato.cli.console import print_json, print_line
from sfumato.cli.options import argument


class _ExplainOptions(options.Options):
    file: str = argument(
        "A model, set of models, policy, ledger, certificate or plan; or a table that one of the "
        "last two lies beside.",
        "FILE",
    )
    shown: options.Shown


def explain(given: _ExplainOptions) -> None:
    """Say in plain words what a file is, and what its numbers mean for a person.

    Nothing is computed again and no promise is checked: that is for `audit` and `verify`.

    \b
    Examples:
      sfumato explain city.model
      sfumato explain city.ledger
      sfumato explain private.csv
      sfumato explain private.csv.plan.json
      sfumato explain salaries.csv.certificate.json
    """
    from sfumato.explanations.artefacts import explain as explained

    found = explained(given.file)
    if given.shown.as_json:
        print_json({"kind": found.kind, "lines": list(found.lines)})
        return
    print_line(f"{given.file}: a {found.kind}")
    for line in found.lines:
        print_line(line)
