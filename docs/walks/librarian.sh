#!/bin/sh
# A librarian with a spreadsheet: from an export of the catalogue to subjects for new titles.
# Runs in an empty folder with the installed command alone: sh librarian.sh
set -eu

# What the catalogue exports: semicolons, Windows line ends, subjects between bars, columns in capitals.
python3 - <<'END'
import random

random.seed(1)
words = {
    "Fisheries": "cod trawler quota catch net harbour",
    "Taxation": "income duty levy revenue treasury rate",
    "Steel": "iron furnace coal mill ore alloy",
    "Wine": "grape vineyard bottle vintage cellar cork",
    "Customs, duties": "tariff border import duty levy port",
}


def book(number):
    subjects = random.sample(list(words), random.choice([1, 1, 2]))
    text = " ".join(random.choice(words[subject].split()) for subject in subjects for _ in range(6))
    return f"978-{number:04};On {text.split()[0]}, volume {number};{text};{' | '.join(subjects)}\r\n"


with open("catalogue.csv", "w", encoding="utf-8-sig", newline="") as file:
    file.write("ISBN;Title;Abstract;Subjects\r\n")
    file.writelines(book(number) for number in range(300))
with open("new.csv", "w", encoding="utf-8", newline="") as file:
    file.write("ISBN;Title;Abstract\r\n")
    file.writelines(book(number).rsplit(";", 1)[0] + "\r\n" for number in range(900, 905))
END

# Were the subjects read as I mean them? Five labels, the comma within one of them is no separator.
tailwise info catalogue.csv | tee info.txt
grep -q '^labels: 5$' info.txt

# Rows to learn from, and rows to judge on.
tailwise split catalogue.csv -o parts
tailwise train parts/train.csv -o subjects
tailwise evaluate subjects parts/test.csv --metrics p@1,recall@5

# The mistake that everybody makes once is told.
tailwise evaluate subjects parts/train.csv --metrics p@1 2>note.txt
grep -q 'was trained on' note.txt

# Which subjects does it find, and what does it take for them?
tailwise labels subjects parts/test.csv
tailwise labels subjects parts/test.csv -o subjects.csv

# Subjects for new titles, with the ISBN, as a table that a spreadsheet opens; and for one text.
tailwise predict subjects new.csv -k 3 -o suggested.csv --id-column isbn
head -3 suggested.csv
test "$(sed -n 2p suggested.csv | cut -d, -f2)" = 978-0900
echo "Trawlers and their catch" | tailwise suggest subjects -k 2
tailwise explain subjects Fisheries "Trawlers and their catch of cod"

# A second model does not replace the first one by accident.
if tailwise train parts/train.csv -o subjects --tail 0.5 </dev/null 2>refused.txt; then exit 1; fi
grep -q -- '--overwrite' refused.txt
tailwise train parts/train.csv -o subjects --tail 0.5 --overwrite
echo "the librarian is served"
