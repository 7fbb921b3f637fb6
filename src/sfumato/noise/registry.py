"""Noises for numbers by name: a new one is one file, and one line here."""

from __future__ import annotations

from typing import Generic, TypeVar

from sfumato.core.errors import InvalidParameter
from sfumato.noise.binomial_noise import BinomialNoise
from sfumato.noise.gaussian_noise import DiscreteGaussianNoise, GaussianNoise
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.noise.number_noise import NumberNoise

Named = TypeVar("Named")


class Registry(dict[str, Named], Generic[Named]):
    """Things by name, and a refusal that lists the names.

    Examples:
        >>> Registry("noise", gaussian=1).named("cauchy")
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: noise must be one of gaussian; got 'cauchy'
    """

    def __init__(self, what: str, entries: dict[str, Named] | None = None, **more: Named) -> None:
        super().__init__(entries or {}, **more)
        self.what = what

    def named(self, name: str, what: str | None = None) -> Named:
        """The thing of that name, or what names there are."""
        if name not in self:
            raise InvalidParameter(what or self.what, name, f"be one of {', '.join(self)}")
        return self[name]


NOISES: Registry[type[NumberNoise]] = Registry(
    "noise",
    {
        "laplace": LaplaceNoise,
        "gaussian": GaussianNoise,
        "discrete-gaussian": DiscreteGaussianNoise,
        "binomial": BinomialNoise,
    },
)
