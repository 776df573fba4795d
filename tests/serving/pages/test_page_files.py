"""Dropped files: tables with labels for every line, texts in any encoding."""

import csv

from serving.pages.small_world import uri


def test_a_dropped_table_gets_labels_for_every_line_and_is_downloaded(page, tmp_path):
    rows = [
        ["7", "Cod quotas", 'The catch of a "trawler";\nand cod, fish'],
        ["8", "Grapes", "vineyard and bottle and cellar"],
        ["9", "", ""],
    ]
    lines = "".join(";".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) + "\r\n" for row in rows)
    page.drop("records.csv", "\ufeffid;Title;Abstract\r\n" + lines)
    page.until(lambda: page.text("#table-state") == "3 of 3 records have suggestions", "the table")
    assert page.text("#table-h") == "records.csv: 3 records"
    boxes = page.run("return [...document.querySelectorAll('#column-boxes input')].map(e => e.checked)")
    assert boxes == [False, True, True]
    cells = page.texts("#table-rows td:last-child")
    assert cells[0].startswith("fisheries") and cells[1].startswith("wine") and cells[2] == "–"
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.click("#download")
    file = tmp_path / "records.labels.csv"
    page.until(lambda: file.exists() and file.stat().st_size, "the download")
    with file.open(encoding="utf-8-sig", newline="") as opened:
        head, *body = csv.reader(opened)
    assert head == ["id", "Title", "Abstract", "suggested labels", "suggested ids", "suggested scores"]
    assert [line[:3] for line in body] == rows
    assert body[0][3].split("; ")[0] == "fisheries" and body[0][4].split("; ")[0] == uri("fisheries")
    page.click("#table-rows button", 1)
    assert page.find("#text").get_attribute("value") == "Grapes\nvineyard and bottle and cellar"
    page.click("#results li:nth-child(1) input")
    page.press_with(page.keys.ALT, page.keys.ARROW_UP)
    assert page.text("#step-place") == "Record 1 of 3"
    page.click("#to-table")
    assert not page.texts("#table-rows td:last-child")[1].startswith("wine"), "what was decided stays"


def test_a_table_that_cannot_be_read_says_why(page):
    read = """const done = arguments[1]; import('/static/tables.js').then(({parseTable}) => {
        try { done(parseTable(arguments[0])); } catch (error) { done(error.message); } })"""
    ask = page.driver.execute_async_script
    assert ask(read, "a,b\n1,2\n\n3\n") == {"columns": ["a", "b"], "rows": [["1", "2"], ["3", ""]]}
    assert ask(read, 'a\tb\n"x ""y""\tz"\t,;\n') == {"columns": ["a", "b"], "rows": [['x "y"\tz', ",;"]]}
    assert "never closed" in ask(read, 'a,b\n1,"2\n')
    assert "3 columns" in ask(read, "a,b\n1,2,3\n")
    assert "no lines" in ask(read, "a,b\n")


def test_a_dropped_text_is_read_in_its_encoding(page, tmp_path):
    for name, raw in (("latin.txt", "Öl und Wein".encode("latin-1")), ("wide.txt", "Öl und Wein".encode("utf-16"))):
        (tmp_path / name).write_bytes(raw)
        page.find("#file").send_keys(str(tmp_path / name))
        page.until(lambda: page.find("#text").get_attribute("value") == "Öl und Wein", name)
        page.click("#clear")


def test_markup_in_a_table_stays_text(page):
    page.drop("<b>x.csv", 'id,text\n1,"<img src=x onerror=alert(1)> cod and fish"\n2,"\u202ewine"\n')
    page.until(lambda: page.text("#table-state") == "2 of 2 records have suggestions", "the table")
    assert page.texts("#table-rows td:nth-child(2)")[0] == "<img src=x onerror=alert(1)> cod and fish"
    assert page.text("#table-h") == "<b>x.csv: 2 records"
    assert not page.all("main img, main b")
