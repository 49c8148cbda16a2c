"""``eddy web``: the report page of a campaign, live, with buttons to label findings."""

from __future__ import annotations

import argparse
import json
import signal
from typing import Any

from fuzzer.exits import Exit
from fuzzer.store.directory import CampaignDirectory
from fuzzer.web.server import Server
from fuzzer.web.site import CampaignSite


def add(parsers: Any) -> None:
    parser = parsers.add_parser("web", help="show a campaign live in a browser of this machine; label findings")
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="(default: any free one)")
    parser.add_argument("--json", action="store_true", help="address, port and token, on one line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    site = CampaignSite(CampaignDirectory.open(args.dir))
    with Server(site, args.port) as server:
        ended: list[int] = []
        previous = signal.signal(signal.SIGTERM, lambda number, _frame: _end(number, ended))
        try:
            if args.json:
                line = {"url": server.app.url, "port": server.app.port, "token": server.app.token}
                print(json.dumps(line), flush=True)
            else:
                print(f"{server.app.url}\nOnly who has this whole address gets in. Ctrl-C ends it.", flush=True)
            server.serve_forever()
        except KeyboardInterrupt:
            site.close()
        finally:
            signal.signal(signal.SIGTERM, previous)
    return Exit.DONE if ended else Exit.INTERRUPTED


def _end(number: int, ended: list[int]) -> None:
    ended.append(number)
    raise KeyboardInterrupt


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 (any free one) to 65535")
    return int(text)
