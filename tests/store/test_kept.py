"""What is kept beside a model: used again, checked, and never in the way."""

import threading
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.store.kept import Kept
from sfumato.store.outputs import locked

COIN = sf.Prior([0.5, 0.5])


@pytest.fixture
def place(tmp_path: Path) -> Kept:
    return Kept.beside(tmp_path / "city.model", "prior", "coin", 1.0)


def never() -> sf.Prior:
    raise AssertionError("it was there")


def is_coin(prior: sf.Prior) -> None:
    if prior.probabilities.size != 2:
        raise InvalidParameter("prior", "another", "be that of a coin")


def test_it_is_made_once(place: Kept) -> None:
    made = place.get(sf.Prior, lambda: COIN)
    again = place.get(sf.Prior, never)
    assert (made.probabilities == again.probabilities).all()
    assert [path.name for path in place.path.parent.iterdir()] == [place.path.name]


def test_all_that_it_follows_from_is_in_its_name(tmp_path: Path) -> None:
    model = tmp_path / "city.model"
    parts = [("a", 1.0), ("a", 1), ("a", 2.0), ("b", 1.0), ("a1", 1.0), ("a", None), ("a",)]
    names = {Kept.beside(model, kind, *part).path.name for part in parts for kind in ("p", "q")}
    assert len(names) == 2 * len(parts)
    assert all(name.startswith("city.") for name in names)


@pytest.mark.parametrize("damage", [b"", b"sfumato\n", b"other", b"x" * 10_000])
def test_what_is_damaged_is_made_again(place: Kept, damage: bytes) -> None:
    place.path.write_bytes(damage)
    said: list[str] = []
    place.get(sf.Prior, lambda: COIN, is_coin, said.append)
    assert len(said) == 1 and said[0].startswith(f"{place.path}: of no use, made again")
    place.get(sf.Prior, never, is_coin, said.append)
    assert len(said) == 1


def test_what_is_of_another_kind_or_does_not_fit_is_made_again(place: Kept) -> None:
    for other in (sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]]), sf.Prior([0.2, 0.3, 0.5])):
        sf.save(other, place.path)
        said: list[str] = []
        assert place.get(sf.Prior, lambda: COIN, is_coin, said.append) is COIN
        assert len(said) == 1
    assert place.read(sf.Prior, is_coin) is not None


def test_where_it_cannot_be_written_it_is_used_all_the_same(tmp_path: Path) -> None:
    said: list[str] = []
    nowhere = Kept.beside(tmp_path / "gone" / "city.model", "prior", "coin")
    assert nowhere.get(sf.Prior, lambda: COIN, None, said.append) is COIN
    assert len(said) == 1 and "not kept for the next run" in said[0]


def test_who_makes_the_same_at_the_same_time_is_in_nobodys_way(place: Kept) -> None:
    said: list[str] = []
    other = threading.Thread(
        target=held, args=(place.path, ready := threading.Event(), done := threading.Event())
    )
    other.start()
    ready.wait()
    assert place.get(sf.Prior, lambda: COIN, None, said.append) is COIN
    assert not place.path.exists() and said == []
    done.set()
    other.join()
    place.get(sf.Prior, lambda: COIN)
    assert place.path.exists()


def held(path: Path, ready: threading.Event, done: threading.Event) -> None:
    with locked(path):
        ready.set()
        done.wait()


def test_nothing_is_written_through_a_link(place: Kept, tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    place.path.symlink_to(precious)
    said: list[str] = []
    place.get(sf.Prior, lambda: COIN, remark=said.append)
    assert precious.read_text() == "mine"
    assert "be none; got 'a link'" in said[-1]
