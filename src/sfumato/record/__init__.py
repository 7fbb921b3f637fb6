"""Several columns of the same people, released together (MDDP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.core.guarantees import Disclosure as Disclosure
    from sfumato.record.coupling.coupling import FullCoupling as FullCoupling
    from sfumato.record.coupling.joint_mixture import JointMixture as JointMixture
    from sfumato.record.record_spec import RecordSpec as RecordSpec

__getattr__, __dir__ = lazily(__name__)
