"""Public data sets that papers report on: their shapes, A and B of their propensities, the files they come as."""

from __future__ import annotations

from typing import NamedTuple

from tailwise.propensity import PRESETS

SOURCE = "the Extreme Classification Repository (manikvarma.org/downloads/XC/XMLRepository.html)"
"""Where they are published; nothing is fetched from there."""

PLACE = "unpack the archive and pass its folder as DATA: the files are told by their names"


class PublicDataset(NamedTuple):
    """A data set as the repository lists it: bag-of-words features, its split into training and test rows."""

    name: str
    train_rows: int
    test_rows: int
    features: int | None
    """None where it was not to be had from a source."""
    labels: int
    family: str
    """Whose A and B its propensities have: a name of :data:`tailwise.propensity.PRESETS`."""
    files: str

    @property
    def a_and_b(self) -> tuple[float, float]:
        """A and B of the propensity, as published for its family."""
        return PRESETS[self.family]


_SPLIT, _TWO, _PAIRS = "data and split files", "train.txt, test.txt", "trn_X_Xf.txt, trn_X_Y.txt, tst_…"

PUBLIC = (
    PublicDataset("Mediamill", 30_993, 12_914, 120, 101, "other", _SPLIT),
    PublicDataset("Bibtex", 4_880, 2_515, 1_836, 159, "other", _SPLIT),
    PublicDataset("Delicious", 12_920, 3_185, 500, 983, "other", _SPLIT),
    PublicDataset("EURLex-4K", 15_539, 3_809, 5_000, 3_993, "other", _TWO),
    PublicDataset("AmazonCat-13K", 1_186_239, 306_782, 203_882, 13_330, "other", _TWO),
    PublicDataset("Wiki10-31K", 14_146, 6_616, 101_938, 30_938, "other", _TWO),
    PublicDataset("LF-AmazonTitles-131K", 294_805, 134_835, None, 131_073, "amazon", _PAIRS),
    PublicDataset("Delicious-200K", 196_606, 100_095, 782_585, 205_443, "other", _TWO),
    PublicDataset("WikiLSHTC-325K", 1_778_351, 587_084, 1_617_899, 325_056, "wikipedia", _TWO),
    PublicDataset("Wikipedia-500K", 1_813_391, 783_743, 2_381_304, 501_070, "wikipedia", _TWO),
    PublicDataset("Amazon-670K", 490_449, 153_025, 135_909, 670_091, "amazon", _TWO),
    PublicDataset("Amazon-3M", 1_717_899, 742_507, 337_067, 2_812_281, "amazon", _TWO),
)
"""By the number of labels; shapes as the papers and the programs that report on them state them."""
