"""The best channel for a belief, a loss and a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.solver.certify import certified as certified
    from sfumato.solver.closed_form import (
        calibrated_randomized_response as calibrated_randomized_response,
    )
    from sfumato.solver.closed_form import paper_response as paper_response
    from sfumato.solver.closed_form import randomized_response as randomized_response
    from sfumato.solver.context_free_channel import context_free as context_free
    from sfumato.solver.design_result import Design as Design
    from sfumato.solver.inverse import least_leakage as least_leakage
    from sfumato.solver.optimal_channel import optimal as optimal

__getattr__, __dir__ = lazily(__name__)
