"""What many draws of Laplace noise promise together: against another accountant, and by laws."""

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from sfumato.noise.curves import gaussian_ratio
from sfumato.studies.rtr.laplace_curve import composed_delta, composed_epsilon, laplace_share


@pytest.mark.parametrize(("each", "count"), [(0.01, 400), (0.1, 60), (0.7, 8)])
def test_the_curve_is_that_of_another_accountant_and_a_hair_above(each: float, count: int) -> None:
    other = pld.from_laplace_mechanism(1 / each, value_discretization_interval=each / 100)
    exact = other.self_compose(count).get_epsilon_for_delta(1e-7)
    found = composed_epsilon(each, count, 1e-7)
    assert exact * (1 - 1e-6) <= found <= exact * 1.001


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.29])
def test_one_draw_has_its_closed_form(epsilon: float) -> None:
    truth = 1 - math.exp((epsilon - 0.3) / 2)
    assert truth * (1 - 1e-9) <= composed_delta(0.3, 1, epsilon) <= truth + 2e-5


def test_no_delta_is_left_at_the_sum_of_pure_budgets() -> None:
    assert composed_delta(0.2, 5, 1.0 + 1e-9) < 1e-12
    assert composed_epsilon(0.2, 5, 1e-11) <= 1.0 + 1e-6


def test_a_share_keeps_its_budget_and_no_larger_one_does() -> None:
    share = laplace_share(1.0, 1e-7, 300)
    assert composed_delta(share, 300, 1.0) <= 1e-7 < composed_delta(1.01 * share, 300, 1.0)


def test_over_many_steps_laplace_noise_must_be_wider_than_gaussian_noise_by_a_root_of_two() -> None:
    count, epsilon = 500, 0.5
    laplace = math.sqrt(2) / laplace_share(epsilon, 1e-7, count)
    gaussian = math.sqrt(count) / gaussian_ratio(epsilon, 1e-7)
    assert laplace / gaussian == pytest.approx(math.sqrt(2), rel=0.01)
