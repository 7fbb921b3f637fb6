"""An order of streams that follows from their names alone, whoever reads them and in what order.

Streams that guide and streams that are held out are counted off in it: in one process and in any
number of workers of an engine they are the same. Checksums stand first, so that neither a person
who numbered the streams nor the alphabet has a say in who is held out with whom.
"""

from __future__ import annotations

from zlib import crc32

SLOTS = 4096
"""Successive parts of the order: the streams of one are together wherever they are gone through."""
SLOT_SHIFT = 20
"""Digits of a checksum (32) that its slot leaves out."""


def name_key(name: str) -> tuple[int, str]:
    """What streams are sorted by.

    Examples:
        >>> sorted(["ann", "bob", "cid"], key=name_key)
        ['cid', 'ann', 'bob']
    """
    return crc32(name.encode("utf-8", "surrogatepass")), name


def slot_of(name: str) -> int:
    """The part of the order that a stream is in."""
    return name_key(name)[0] >> SLOT_SHIFT
