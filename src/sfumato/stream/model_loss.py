"""Which loss suits a model of a stream, what its numbers are in, and losses of batches by name."""

from __future__ import annotations

import sfumato.stream.partition.batch_loss as batch_losses
from sfumato.core.alphabet import Alphabet
from sfumato.models.encoding import DEGREES, Bins, Grid, Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.stream.partition.batch_loss import BatchLoss, additive
from sfumato.tables.named_loss import named_loss


def default_loss(model: StreamModel) -> str:
    """Distance where values have places that were cut into cells or bins; else right or wrong.

    Examples:
        >>> from sfumato.models.markov import MarkovChain
        >>> speed = Bins([0.0, 10.0, 20.0])
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]], alphabet=speed.alphabet)
        >>> default_loss(StreamModel(chain, speed))
        'absolute'
    """
    match model.encoding:
        case Bins():
            return "absolute"
        case Grid():
            return "great-circle" if model.unit == DEGREES else "euclidean"
        case Symbols():
            return "hamming"


def unit_of(loss: str | list[list[float]], model: StreamModel) -> str:
    """What a number of this loss is in, as words to put behind it; "" where nothing is known.

    Examples:
        >>> from sfumato.models.markov import MarkovChain
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> unit_of("hamming", StreamModel(chain, Symbols(chain.alphabet)))
        'wrong'
    """
    match loss:
        case "great-circle":
            return "km"
        case "hamming":
            return "wrong"
        case "absolute" | "euclidean":
            return model.unit
        case "squared":
            return f"{model.unit}^2" if model.unit else ""
        case _:
            return ""


def named_batch_loss(loss: str | list[list[float]], alphabet: Alphabet) -> BatchLoss:
    """A loss of batches: that of single values, summed, or the distance of histograms.

    Examples:
        >>> named_batch_loss("histogram", Alphabet.of_size(3)).name
        'histogram'
    """
    if loss == "histogram":
        return batch_losses.histogram(alphabet)
    return additive(named_loss(loss, alphabet))
