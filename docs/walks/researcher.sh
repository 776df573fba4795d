#!/bin/sh
# A researcher with a data set of the repository and the output of other programs: who is really better?
# Runs in an empty folder with the installed command alone: sh researcher.sh
set -eu

# A data set in the "LF" form, and what omikuji, napkinXC and PECOS would write for its test rows.
python3 - <<'END'
import os

import numpy as np
from scipy import sparse

chance = np.random.default_rng(0)
n_labels, n_features, rows = 30, 60, {"trn": 600, "tst": 200}
popularity = 1 / np.arange(1, n_labels + 1)
os.makedirs("tiny-lf", exist_ok=True)


def write(path, lines, columns):
    with open(path, "w") as file:
        file.write(f"{len(lines)} {columns}\n")
        file.writelines(" ".join(f"{i}:{v:g}" for i, v in line) + "\n" for line in lines)


for split, n in rows.items():
    X, Y = [], []
    for _ in range(n):
        labels = np.sort(chance.choice(n_labels, 2, replace=False, p=popularity / popularity.sum()))
        words = {2 * label + side: 1.0 for label in labels for side in (0, 1)} | {int(chance.integers(n_features)): 0.5}
        X.append(sorted(words.items()))
        Y.append([(label, 1) for label in labels])
    write(f"tiny-lf/{split}_X_Xf.txt", X, n_features)
    write(f"tiny-lf/{split}_X_Y.txt", Y, n_labels)
# Programs that are right about the frequent labels, and guess.
scores = np.full((200, n_labels), 0.0)
for row, truth in enumerate(Y):
    for label, _ in truth:
        scores[row, label] = 1.0 if label < 12 else 0.0
scores += 0.3 * chance.random(scores.shape) * popularity
best = np.argsort(-scores, axis=1)[:, :5]
with open("omikuji.txt", "w") as file:
    file.writelines("\t".join(f"{j} {scores[i, j]:.3f}" for j in best[i]) + "\n" for i in range(200))
with open("napkinxc.txt", "w") as file:
    file.writelines(" ".join(f"{j}:{scores[i, j]:.5g}" for j in best[i]) + " \n" for i in range(200))
kept = sparse.lil_matrix(scores.shape)
for i in range(200):
    kept[i, best[i]] = scores[i, best[i]]
sparse.save_npz("pecos.npz", kept.tocsr())
END

# What is in the folder, and which A and B its family has.
tailwise info tiny-lf
tailwise datasets public

# One model of our own, and the three programs beside it, on the same rows.
tailwise train tiny-lf -o ours --model parabel --propensity amazon
tailwise evaluate --predictions omikuji.txt tiny-lf --propensity amazon --metrics p@1,p@5,psp@5 --json >one.json
tailwise evaluate --predictions napkinxc.txt tiny-lf --propensity amazon --metrics p@1,p@5,psp@5 --json >two.json
tailwise evaluate --predictions pecos.npz tiny-lf --propensity amazon --metrics p@1,p@5,psp@5 --json >three.json
cmp one.json two.json
cmp one.json three.json
tailwise compare ours omikuji.txt napkinxc.txt pecos.npz tiny-lf --metrics p@1,psp@5

# The same scores by a file of the published kind, and a wrong line told by its number.
tailwise predict ours tiny-lf -o ours.npz
tailwise evaluate --predictions ours.npz tiny-lf --propensity jain:0.6,2.6 --metrics p@1,psp@5
sed '7s/.*/napkinXC - predict/' napkinxc.txt >broken.txt
if tailwise evaluate --predictions broken.txt tiny-lf 2>refused.txt; then exit 1; fi
grep -q 'broken.txt, line 7' refused.txt
echo "the researcher is served"
