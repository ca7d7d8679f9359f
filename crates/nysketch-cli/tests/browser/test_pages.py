"""The page of `nysketch report` in a real browser.

    NYSKETCH_BIN=target/debug/nysketch python3 test_pages.py

Needs Chromium and Python's standard library only. With NYSKETCH_SHOTS=FOLDER, pictures of every
page are kept.
"""

import csv
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from devtools import Browser

COMMAND = os.environ.get("NYSKETCH_BIN", "nysketch")
SHOTS = os.environ.get("NYSKETCH_SHOTS")
HOSTILE = [
    "<script>document.title='broken'</script>",
    "\"><img src=x onerror=document.title='broken'>",
    "quote ' and \" and & and `",
    "emoji 🦀 👩‍🔬",
    "n" * 300,
    "control \x01 \x1b \x7f",
    "\u202ereversed",
    "</style></title>",
]


def table(path, columns, clusters, names=None, shift=0.0, seed=1, rows=1500):
    """Writes rows around some centres as csv; few centres have equal distances."""
    chance = random.Random(seed)
    if clusters <= columns:
        centres = [[12.0 * (i == j) for j in range(columns)] for i in range(clusters)]
    else:
        centres = [[chance.gauss(0, 6) for _ in range(columns)] for _ in range(clusters)]
    chance = random.Random(shift * 1000 + seed)
    with open(path, "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(names or [f"column {i}" for i in range(columns)])
        for i in range(rows):
            lines.writerow([f"{x + chance.gauss(shift, 1):.4f}" for x in centres[i % clusters]])


def run(folder, *words):
    done = subprocess.run([COMMAND, *map(str, words)], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr}")


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def page(self, name, columns, clusters, *options, names=None):
        """Makes the page of a table, with models for k = 2 to 4, or for this number of clusters."""
        table(self.path / f"{name}.csv", columns, clusters, names)
        run(
            self.path,
            "sketch",
            f"{name}.csv",
            "-o",
            f"{name}.nys",
            "--landmarks",
            max(100, 2 * clusters),
        )
        if clusters > 12:
            run(self.path, "fit", "kmeans", f"{name}.nys", "-k", clusters, "-o", f"{name}.json")
            options = (f"{name}.json", *options)
        run(
            self.path, "report", f"{name}.nys", "-o", f"{name}.html", "--most-clusters", 4, *options
        )
        return self.path / f"{name}.html"

    def shoot(self, name):
        if SHOTS:
            self.browser.screenshot(Path(SHOTS) / f"{name}.png", whole=True)

    def quiet(self, page):
        """Checks that nothing was logged and that only the page was loaded."""
        self.browser.evaluate("1")
        self.assertEqual(self.browser.complaints, [])
        self.assertEqual(self.browser.requests, [f"file://{page}"])
        self.assertNotEqual(self.browser.evaluate("document.title"), "broken")

    def sound(self, page, clusters):
        """Checks the page with and without scripts, in light and dark mode: complete, not too
        wide."""
        browser, ask = self.browser, self.browser.evaluate
        self.assertLess(page.stat().st_size, 4e6)
        for scripts in (True, False):
            for dark in (False, True):
                seconds = browser.open(page, scripts, dark)
                self.assertLess(seconds, 10)
                self.quiet(page)
                self.assertEqual(
                    ask("document.documentElement.classList.contains('live')"), scripts
                )
                shown = "[...document.querySelectorAll('.model')].filter(m => m.open && !m.hidden)"
                self.assertEqual(ask(f"{shown}.length"), 1)
                self.assertEqual(ask(f"{shown}[0].querySelectorAll('.card').length"), clusters)
                self.assertGreater(
                    ask("document.querySelectorAll('svg.map [data-dot]').length"), 40
                )
                self.assertLessEqual(ask("document.documentElement.scrollWidth - innerWidth"), 0)
                paper = ask("getComputedStyle(document.body).backgroundColor")
                self.assertEqual(paper == "rgb(255, 255, 255)", not dark, paper)
                self.shoot(
                    f"{page.stem}-{'on' if scripts else 'off'}-{'dark' if dark else 'light'}"
                )
        # In a narrow window the tables scroll, not the page.
        browser.open(page, width=400)
        self.assertLessEqual(ask("document.documentElement.scrollWidth - innerWidth"), 0)
        self.quiet(page)

    def test_two_columns_two_clusters(self):
        self.sound(self.page("two", 2, 2), 2)

    def test_two_columns_sixty_clusters(self):
        self.sound(self.page("many", 2, 60), 60)

    def test_39_columns(self):
        self.sound(self.page("wide", 39, 3), 3)

    def test_300_columns_sixty_clusters(self):
        self.sound(self.page("largest", 300, 60), 60)

    def test_hostile_names(self):
        page = self.page("hostile", len(HOSTILE), 2, names=HOSTILE)
        self.sound(page, 2)
        self.browser.open(page)
        heads = (
            "[...document.querySelectorAll('.model[open] .heat tbody th')].map(t => t.textContent)"
        )
        shown = self.browser.evaluate(heads)
        self.assertEqual(shown[0], HOSTILE[0])
        self.assertEqual(shown[3], HOSTILE[3])
        self.assertLessEqual(max(map(len, shown)), 60)
        full = "[...document.querySelectorAll('.heat [title]')].map(t => t.title)"
        self.assertIn(HOSTILE[4], self.browser.evaluate(full))
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('img').length"), 0)

    def test_slider_by_keyboard(self):
        page = self.page("slider", 3, 3)
        browser, ask = self.browser, self.browser.evaluate
        browser.open(page)
        ask("document.querySelector('#model').focus()")
        state = (
            "[document.querySelector('#chosen').textContent,"
            "document.querySelector('.model:not([hidden])').dataset.k,"
            "new Set([...document.querySelectorAll('svg.map [data-dot]')].map("
            "d => d.dataset.label)).size,"
            "document.querySelectorAll('svg.map .centre:not(.off)').length,"
            "document.querySelector('.k.now').dataset.k]"
        )
        browser.press("Home")
        self.assertEqual(ask(state), ["k-means, k = 2", "2", 2, 2, "2"])
        browser.press("ArrowRight")
        self.assertEqual(ask(state), ["k-means, k = 3 (suggested)", "3", 3, 3, "3"])
        browser.press("End")
        self.assertEqual(ask(state), ["k-means, k = 4", "4", 4, 4, "4"])
        # A click on the curve selects a model, too.
        browser.click(".curve .k[data-k='2']")
        self.assertEqual(ask(state)[1], "2")
        self.quiet(page)

    def test_what_is_pointed_at_is_told(self):
        page = self.page("hover", 3, 3)
        browser, ask = self.browser, self.browser.evaluate
        browser.open(page)
        # The last mark is on top of the others.
        ask("[...document.querySelectorAll('svg.map [data-dot]')].at(-1).id = 'last'")
        ask("document.querySelectorAll('svg.map .centre').forEach(c => c.remove())")
        browser.point("#last")
        self.assertRegex(
            ask("document.querySelector('#tip').textContent"), r"^cluster \d\n\d+ rows?\ncolumn \d "
        )
        browser.point(".model[open] .heat td[data-z]")
        self.assertRegex(
            ask("document.querySelector('#tip').textContent"),
            r"^column 0\ncluster 0: .*\n.* standard deviations",
        )
        ask("document.querySelector('svg.map').focus()")
        browser.press("ArrowRight")
        self.assertFalse(ask("document.querySelector('#tip').hidden"))
        self.assertEqual(ask("document.querySelectorAll('svg.map .now').length"), 1)
        self.quiet(page)

    def test_tables_sort_and_transpose(self):
        page = self.page("tables", 5, 3)
        browser, ask = self.browser, self.browser.evaluate
        browser.open(page)
        cells = (
            "[...document.querySelectorAll('.model[open] .heat tbody tr')]"
            ".map(r => r.cells[1].textContent)"
        )
        before = ask(cells)
        browser.click(".model[open] .heat thead th:nth-child(2) button")
        falling = [float(x) for x in ask(cells)]
        self.assertEqual(falling, sorted(map(float, before), reverse=True))
        browser.click(".model[open] .heat thead th:nth-child(2) button")
        self.assertEqual([float(x) for x in ask(cells)], falling[::-1])
        heat = "document.querySelector('.model[open] .heat')"
        size = f"[{heat}.rows.length, {heat}.rows[0].cells.length]"
        self.assertEqual(ask(size), [6, 6])
        text = f"[...{heat}.rows].map(r => r.cells[0].textContent)"
        browser.click(".model[open] .transpose")
        self.assertEqual(ask(size), [6, 6])
        self.assertEqual(ask(text)[1].replace("mean", ""), "all rows")
        browser.click(".model[open] .numbers")
        self.assertTrue(
            ask("document.querySelector('.model[open] .tall').classList.contains('compact')")
        )
        browser.click("#theme")
        self.assertTrue(ask("document.documentElement.classList.contains('dark')"))
        self.quiet(page)

    def test_drift_over_time(self):
        table(self.path / "base.csv", 3, 3, rows=3000)
        run(self.path, "sketch", "base.csv", "-o", "base.nys", "--landmarks", 50)
        (self.path / "days").mkdir(exist_ok=True)
        for day in range(1, 41):
            name = f"2024-02-{day:02}"
            table(self.path / "day.csv", 3, 3, shift=0.01 * max(0, day - 30) + day * 1e-9, rows=900)
            run(self.path, "sketch", "day.csv", "--plan", "base.nys", "-o", f"days/{name}.nys")
        run(
            self.path,
            "report",
            "--against",
            "base.nys",
            "days",
            "-o",
            "drift.html",
            "--most-clusters",
            4,
        )
        page = self.path / "drift.html"
        self.sound(page, 3)
        self.browser.open(page)
        texts = self.browser.evaluate(
            "[...document.querySelectorAll('svg.long text')].map(t => t.textContent)"
        )
        for day in range(1, 41):
            self.assertEqual(texts.count(f"2024-02-{day:02}"), 1)
        self.assertEqual(
            self.browser.evaluate(
                "document.querySelectorAll('svg.long polyline.threshold').length"
            ),
            2,
        )
        self.browser.point("svg.long [data-dot='20']")
        self.assertIn(
            "2024-02-21", self.browser.evaluate("document.querySelector('#tip').textContent")
        )
        self.quiet(page)

    def test_mixtures_have_their_own_curve(self):
        page = self.page("mixture", 3, 3)
        run(self.path, "fit", "gmm", "mixture.nys", "-k", 3, "-o", "g3.json")
        run(self.path, "fit", "gmm", "mixture.nys", "-k", 2, "-o", "g2.json")
        run(
            self.path,
            "report",
            "mixture.nys",
            "g3.json",
            "--model",
            "g2.json",
            "-o",
            page,
            "--most-clusters",
            4,
        )
        self.sound(page, 3)
        self.browser.open(page)
        labels = self.browser.evaluate(
            "[...document.querySelectorAll('.curve svg')].map(s => s.ariaLabel)"
        )
        self.assertEqual(
            labels,
            [
                "mean negative log-likelihood (Gaussian mixture) over k",
                "BIC over k",
                "ICL over k",
            ],
        )
        self.assertEqual(self.browser.evaluate("document.querySelector('#model').max"), "1")


if __name__ == "__main__":
    unittest.main()
