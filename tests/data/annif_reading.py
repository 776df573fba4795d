"""Reads a corpus as Annif does, in Annif's own environment: ``python annif_reading.py PATH`` prints JSON."""

import json
import sys

from annif.corpus import DocumentDirectory, DocumentFileCSV, DocumentFileJSONL, DocumentFileTSV


class Subjects:
    """Knows every URI, and the labels of the tests by their text."""

    def by_uri(self, uri, warnings=True):
        return uri

    def by_label(self, label, language):
        return {"Fish": "http://e.org/1", "Law": "http://e.org/2"}.get(label)


path, name = sys.argv[1], sys.argv[1].removesuffix(".gz")
if name.endswith(".csv"):
    corpus = DocumentFileCSV(path, Subjects())
elif name.endswith(".jsonl"):
    corpus = DocumentFileJSONL(path, Subjects(), "en")
elif name.endswith(".tsv"):
    corpus = DocumentFileTSV(path, Subjects())
else:
    corpus = DocumentDirectory(path, Subjects(), "en", require_subjects=True)
print(json.dumps([[doc.text, sorted(doc.subject_set)] for doc in corpus.documents]))
