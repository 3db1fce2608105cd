"""The first screen of a report as a PNG: screenshot.py REPORT.html OUT.png [HEIGHT]. Needs Chromium."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cli"))
from browser import Browser  # noqa: E402

page, out = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
browser = Browser(1280, int(sys.argv[3]) if len(sys.argv) > 3 else 900)
browser.open(page)
browser.wait("!window.mllmsimTimeline || mllmsimTimeline.frames > 0")
browser.run("document.documentElement.style.overflow = 'hidden'")  # no scroll bar
browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
browser.screenshot(out)
browser.close()
