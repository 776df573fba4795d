"""A small trial that every report test shares."""

import numpy as np
import pytest

from tailwise import Centroid, Popularity, make_longtail
from tailwise.data import Rows
from tailwise.experiments.report import CANDIDATES
from tailwise.judging import judge
from tailwise.text import Tagger


@pytest.fixture(scope="session")
def trial():
    data = make_longtail(1200, 600, 150, random_state=0)
    ids = [f"id:{i}" for i in range(150)]
    names = [f"<Label> & number {i}" for i in range(150)]
    taggers = {
        name: Tagger(model).fit(data.X_train, data.Y_train, label_ids=ids, names=names)
        for name, model in (("centroid", Centroid()), ("popularity", Popularity()))
    }
    # A label that only the judged rows have.
    Y = np.hstack([data.Y_test.toarray(), np.eye(data.n_test, 1)])
    from scipy import sparse

    rows = Rows("synthetic rows", data.X_test, sparse.csr_array(Y.astype(np.float32)), [*ids, "new"], [*names, "new"])
    return judge(taggers, rows, CANDIDATES)
