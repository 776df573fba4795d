import numpy as np
import pytest

from tailwise import NearestRows
from tailwise.errors import InvalidInput
from tailwise.tail import TradeOff


def test_trade_off_curve_and_constraint(rows):
    X, Y = rows
    model = TradeOff(NearestRows(), maximise="psp@3", max_loss={"p@3": 1.0}, random_state=0).fit(X, Y)
    curve = model.curve_
    i = int(np.argmin(np.abs(curve.tails - model.tail_)))
    assert curve.column("p@3")[i] >= curve.column("p@3").max() - 1.0
    allowed = curve.column("p@3") >= curve.column("p@3").max() - 1.0
    assert curve.column("psp@3")[i] == curve.column("psp@3")[allowed].max()
    assert curve.plot(chosen=model.tail_).get_xlabel() == "P@1"
    with pytest.raises(InvalidInput, match="the curve has no 'recall@5'; it has p@1"):
        curve.choose("recall@5")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TradeOff(NearestRows(), maximise="psp"), "maximise='psp': metric 'psp' needs the number of labels"),
        (TradeOff(NearestRows(), max_loss={"p@1": -1}), r"max_loss\['p@1'\]=-1 is outside"),
        (TradeOff(NearestRows(), validation_fraction=0), "validation_fraction=0 is outside"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)
