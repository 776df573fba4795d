"""Is every name shown as text by the report, whatever it holds, in a real browser?

Labels, models and data are named by what runs, loads or hides something where a page forgets to quote. Chromium opens
the pages: a name must be readable on it letter by letter, and nothing may have run, loaded or been made from it. Needs
chromium, chromedriver and selenium, and says so where one is missing.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from drills.harness import Outcome

COUNT = 2_000
MODEST = 100
N_LABELS = 60
PAYLOADS = (
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "\"><svg/onload='window.hit=1'>",
    "' autofocus onfocus=window.hit=1 x='",
    "</title><body onload=window.hit=1>",
    "</style><script>window.hit=1</script>",
    "--><script>window.hit=1</script><!--",
    "]]><script>window.hit=1</script>",
    "<iframe src='javascript:parent.hit=1'></iframe>",
    "<a href=javascript:window.hit=1 autofocus>",
    "<details open ontoggle=window.hit=1>",
    "<style>@import 'http://127.0.0.1:9/x.css';</style>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<base href=http://127.0.0.1:9/>",
    "<object data=http://127.0.0.1:9/x></object>",
    "<math><mtext><script>window.hit=1</script></mtext></math>",
    "<template><script>window.hit=1</script></template>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "&#60;script&#62;window.hit=1&#60;/script&#62;",
    "{{constructor.constructor('window.hit=1')()}}",
    "${window.hit=1}",
    "javascript:window.hit=1",
    "<scr<script>ipt>window.hit=1</scr</script>ipt>",
    "\\u003cscript\\u003ewindow.hit=1\\u003c/script\\u003e",
    "<x onclick=window.hit=1 id=document>",
    "<form><input name=attributes><button formaction=http://127.0.0.1:9/>",
)
_NEEDS_A_BROWSER = {"chromium": "chromium", "chromedriver": "chromedriver"}


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """About ``count`` names on pages, each in a place of its own."""
    missing = [name for name in _NEEDS_A_BROWSER if shutil.which(name) is None]
    missing += [] if find_spec("selenium") else ["selenium"]
    if missing:
        print(f"  not run: {' and '.join(missing)} missing")
        return
    outcome = Outcome("report")
    browser = _browser(folder / "profile")
    try:
        page = 0
        while outcome.tried < count:
            path = folder / f"page{page}.html"
            names = _write_page(path, page)
            _judge(browser, path, names, outcome)
            page += 1
    finally:
        browser.quit()
    yield outcome


def _judge(browser: Any, path: Path, names: list[str], outcome: Outcome) -> None:
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    text = browser.execute_script("return document.documentElement.textContent")
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    harm = [url for url in asked if url != path.as_uri() and not url.startswith(("chrome", "data:"))]
    harm += [entry["message"] for entry in browser.get_log("browser")]
    if browser.execute_script("return window.hit"):
        harm.append("a script ran")
    made = "script, body :is(img, iframe, object, link, base, meta, form, input, math, template, x)"
    harm += browser.execute_script(f"return [...document.querySelectorAll('{made}')].map(e => e.outerHTML)")
    for why in harm:
        outcome.count("broken", why)
    for name in names:
        if name.rpartition(" ")[2] in text:
            shown = " ".join(name.split()) in " ".join(text.split())
            outcome.count("intact" if shown else "broken", f"not shown as it is: {name}")


def _write_page(path: Path, page: int) -> list[str]:
    """A report whose names are all payloads; each ends in a word of its own, by which it is found again."""
    from tailwise import Centroid, Popularity
    from tailwise.data import Rows
    from tailwise.experiments.report import CANDIDATES, build_report
    from tailwise.judging import judge
    from tailwise.text import Tagger

    chance = random.Random(page)
    words = iter(f"mark{page}x{number:04}" for number in range(10_000))
    rng = np.random.default_rng(page)
    X = sparse.random_array((300, 80), density=0.1, format="csr", rng=rng, dtype=np.float32)
    Y = sparse.csr_array((rng.random((300, N_LABELS)) < 0.05).astype(np.float32))
    names = [f"{_payload(chance)} {next(words)}" for _ in range(N_LABELS)]
    models = [f"{_payload(chance)} {next(words)}" for _ in range(2)]
    data = f"{_payload(chance)} {next(words)}"
    taggers = {
        name: Tagger(model).fit(X, Y, label_ids=[f"{i}" for i in range(N_LABELS)], names=names)
        for name, model in zip(models, (Centroid(), Popularity()), strict=True)
    }
    rows = Rows(data, X, Y, [f"{i}" for i in range(N_LABELS)], names)
    path.write_text(build_report(judge(taggers, rows, CANDIDATES)), encoding="utf-8")
    return [*names, *models, data]


def _payload(chance: random.Random) -> str:
    payload = chance.choice(PAYLOADS)
    if chance.random() < 0.3:
        payload = chance.choice(("'", '"', "`", "\\", "%", 'x">', "';")) + payload
    return payload.upper() if "window" not in payload and chance.random() < 0.2 else payload


def _browser(profile: Path) -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
