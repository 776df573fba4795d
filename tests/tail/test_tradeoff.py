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


def test_a_curve_prints_and_becomes_a_frame():
    from tailwise.tail.tradeoff import TradeOffCurve

    curve = TradeOffCurve(np.array([0.0, 1.0]), ["p@1", "psp@1"], np.array([[80.0, 40.0], [70.0, 50.0]]))
    assert str(curve).splitlines()[1:] == ["tail    p@1  psp@1", "0     80.00  40.00", "1     70.00  50.00"]
    assert "<table" in curve._repr_html_()
    pytest.importorskip("pandas")
    assert curve.to_frame()["psp@1"].tolist() == [40.0, 50.0]
