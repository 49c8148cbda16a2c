"""How long the report page of a large campaign takes to write and to open.

    python -m benchmarks.page DIR [--findings 500] [--points 100000]

Copies findings of a campaign until there are so many, plots so many moments, writes the page and opens it thrice in
headless Chromium (which the tests of the page use as well).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.results import save
from fuzzer.cli.common import scratch_folder
from fuzzer.page.campaign import read_campaign
from fuzzer.page.render import page
from fuzzer.signature import Signature
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.stats import PLOT_COLUMNS

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "page"))

#: From the start of navigation until everything is laid out.
_OPENED = "return performance.getEntriesByType('navigation')[0].loadEventEnd"


def enlarged(source: str, target: Path, findings: int, points: int) -> CampaignDirectory:
    """A campaign directory with as many findings (copies, each of another signature) and plotted moments."""
    taken = FindingStore(CampaignDirectory.open(source)).load_all()
    made = CampaignDirectory.create(target, {"seed": 1})
    made.start()
    store = FindingStore(made)
    for number in range(findings):
        finding = taken[number % len(taken)]
        major = f"{number}|{finding.signature.major}"
        store.save(replace(finding, signature=Signature(major, finding.signature.minor)))
    with open(made.plot_data, "w", encoding="utf-8") as file:
        file.write("# " + ", ".join(PLOT_COLUMNS) + "\n")
        for moment in range(points):
            file.write(", ".join(str(moment // (column + 1)) for column in range(len(PLOT_COLUMNS))) + "\n")
    return made


def measure(directory: CampaignDirectory, folder: Path) -> dict[str, Any]:
    from webdriver import MISSING, Browser

    started = time.monotonic()
    text = page(read_campaign(directory.path), directory.path)
    written = time.monotonic() - started
    directory.report_page.write_text(text, encoding="utf-8")
    numbers = {"page_bytes": len(text.encode()), "seconds_to_write": round(written, 2)}
    if MISSING:
        return numbers | {"seconds_to_open": None, "why": MISSING}
    opened = []
    with Browser(folder) as browser:
        for _time in range(3):
            browser.open("about:blank")
            browser.open(directory.report_page.as_uri())
            opened.append(browser.run(_OPENED) / 1000)
    return numbers | {"seconds_to_open": round(statistics.median(opened), 3)}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page")
    parser.add_argument("dir", metavar="DIR", help="a campaign with findings")
    parser.add_argument("--findings", type=int, default=500)
    parser.add_argument("--points", type=int, default=100_000)
    args = parser.parse_args(argv)
    with scratch_folder() as folder:
        numbers = measure(enlarged(args.dir, folder / "camp", args.findings, args.points), folder)
    print(numbers)
    save("page", f"python -m benchmarks.page DIR --findings {args.findings} --points {args.points}", numbers)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
