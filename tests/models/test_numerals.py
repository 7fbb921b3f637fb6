import pytest

from sfumato.models.encoding import Raw, Unreadable
from sfumato.models.numerals import Numerals


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        (["$1,200.50", "$90", "-$3"], [1200.5, 90.0, -3.0]),
        (["1 234,5", "7", "0,25"], [1234.5, 7.0, 0.25]),
        (["1.234.567", "89"], [1234567.0, 89.0]),
        (["1.234,56 €", "12,00 €"], [1234.56, 12.0]),
        (["1,200", "3,400,000"], [1200.0, 3400000.0]),
        (["1,200", "950"], [1200.0, 950.0]),
        (["(300)", "1'000"], [-300.0, 1000.0]),
        (["USD 12.5", "13 USD"], [12.5, 13.0]),
        (["45 %", "7%"], [45.0, 7.0]),
        (["−5", "5"], [-5.0, 5.0]),
        (["1e3", "2.5", 3, 4.5], [1000.0, 2.5, 3.0, 4.5]),
        (["£1,000", 20], [1000.0, 20.0]),
    ],
)
def test_numbers_are_read_as_people_write_them(written: list[Raw], numbers: list[float]) -> None:
    found = Numerals.of(written)
    assert found is not None
    assert [found.read(value) for value in written] == numbers


@pytest.mark.parametrize(
    "written",
    [
        ["red", "green"],
        ["1,2,3", "4"],
        ["12,34,567", "1"],
        ["1.2.3", "4.5.6"],
        ["2024-01-31", "2024-02-01"],
        ["12 Main Street", "14 Main Street"],
        ["$", "$1"],
        ["a1", "b2"],
        ["555-1234"],
        ["02134", "90210"],
        ["", "$5"],
    ],
)
def test_what_is_no_number_is_not_taken_for_one(written: list[Raw]) -> None:
    assert Numerals.of(written) is None


def test_a_cell_that_is_written_otherwise_is_refused_and_not_quoted() -> None:
    money = Numerals.of(["1.234,50", "7,25"])
    assert money is not None
    with pytest.raises(Unreadable, match="must be a number") as problem:
        money.read("1,234.50")
    assert "234" not in str(problem.value)
