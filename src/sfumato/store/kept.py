"""What follows from a model and takes long to make: kept beside it for the next run.

The name of such a file is that of the model with ten digits of a digest of everything that the
thing follows from, as `city.4f0c21d3aa.policy`: another budget, loss or model has another file.
A kept file is a convenience. What is read is checked like everything that is read; where there is
none, or one that does not fit, the thing is made again; where none can be written, it is used all
the same. Two processes that make the same thing at a time write the same file, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sfumato.core.digest import Part, digest
from sfumato.core.errors import CorruptData, FileInUse, InvalidParameter
from sfumato.store.codec import MAGIC, from_bytes, to_bytes
from sfumato.store.outputs import write_whole

_DIGITS = 10
Thing = TypeVar("Thing")
Remark = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Kept:
    """A place beside a model for one thing that follows from it.

    Attributes:
        path: The file.

    Examples:
        >>> from sfumato import Prior
        >>> place = Kept.beside(getfixture("tmp_path") / "city.model", "prior", "fair", 2)
        >>> place.path.name
        'city.e67c3c89fd.prior'
        >>> place.get(Prior, lambda: Prior([0.5, 0.5]))
        Prior(probabilities=array([0.5, 0.5]), alphabet=...)
        >>> place.get(Prior, lambda: 1 / 0)  # there by now
        Prior(probabilities=array([0.5, 0.5]), alphabet=...)
    """

    path: Path

    @classmethod
    def beside(cls, model: str | Path, kind: str, *follows_from: Part) -> Kept:
        """Where a thing of some kind is kept, given all that it follows from."""
        model = Path(model)
        name = digest("kept", kind, *follows_from)[:_DIGITS]
        return cls(model.with_name(f"{model.stem}.{name}.{kind}"))

    def get(
        self,
        form: type[Thing],
        make: Callable[[], Thing],
        check: Callable[[Thing], None] | None = None,
        remark: Remark | None = None,
    ) -> Thing:
        """The thing: as it was kept, or made now and kept from now on.

        Args:
            form: Its class.
            make: Makes it.
            check: Raises `InvalidParameter` if what was kept is not what was asked for.
            remark: Told why it was made again, or could not be kept.
        """
        found = self.read(form, check, remark)
        if found is None:
            found = make()
            self._write(found, remark)
        return found

    def read(
        self,
        form: type[Thing],
        check: Callable[[Thing], None] | None = None,
        remark: Remark | None = None,
    ) -> Thing | None:
        """The thing as it was kept; None if it is not there, or does not fit."""
        try:
            data = self.path.read_bytes()
            found = from_bytes(data if data.startswith(MAGIC) else data[: len(MAGIC)], form)
            if check is not None:
                check(found)
        except FileNotFoundError:
            return None
        except (OSError, CorruptData, InvalidParameter) as problem:
            if remark is not None:
                remark(f"{self.path}: of no use, made again ({problem})")
            return None
        return found

    def _write(self, thing: object, remark: Remark | None) -> None:
        try:
            if (
                self.path.is_symlink()
            ):  # its name can be foreseen, and what it leads to is no policy
                raise InvalidParameter("the file", "a link", "be none")
            write_whole(self.path, to_bytes(thing))
        except FileInUse:
            return  # by who makes the same
        except (OSError, InvalidParameter) as problem:
            if remark is not None:
                remark(f"{self.path}: not kept for the next run ({problem})")
