"""As much of the WebDriver protocol as the page's tests need, over HTTP: no package beside the browser itself."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

DRIVER = shutil.which("chromedriver")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

#: Why a machine cannot run these tests; empty where it can.
MISSING = "" if DRIVER and BROWSER else "needs chromium and chromedriver"

_START_SECONDS = 30.0


class Browser:
    """A headless Chromium for the life of a ``with`` block."""

    def __init__(self, folder: Path, width: int = 1200, height: int = 900, phone: bool = False, dark: bool = False):
        self.folder, self.size, self.phone, self.dark = folder, (width, height), phone, dark

    def __enter__(self) -> Browser:
        assert DRIVER and BROWSER
        log = self.folder / "chromedriver.log"
        with open(log, "wb") as out:
            # port 0: the driver picks one and says which
            self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=out, stderr=subprocess.STDOUT)
        try:
            self.root = f"http://127.0.0.1:{self._port(log)}"
            self.session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": self._wanted()}})[
                "sessionId"
            ]
            self.base = f"/session/{self.session}"
        except BaseException:
            self.driver.kill()
            self.driver.wait()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            self._call("DELETE", self.base)
        finally:
            self.driver.terminate()
            self.driver.wait()

    def _port(self, log: Path) -> str:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            words = log.read_text(errors="replace").split()
            if "successfully" in words and words[-1].rstrip(".").isdecimal():
                return words[-1].rstrip(".")
            time.sleep(0.05)
        raise RuntimeError(f"chromedriver does not start: {log.read_text(errors='replace')}")

    def _wanted(self) -> dict[str, Any]:
        args = ["--headless=new", "--disable-gpu", f"--window-size={self.size[0]},{self.size[1]}", "--hide-scrollbars"]
        args += [f"--user-data-dir={self.folder / 'profile'}"]
        if os.geteuid() == 0:
            args.append("--no-sandbox")  # Chromium refuses to be root's otherwise
        if self.dark:
            args.append("--blink-settings=preferredColorScheme=0")
        options: dict[str, Any] = {"binary": BROWSER, "args": args}
        if self.phone:
            metrics = {"width": self.size[0], "height": self.size[1], "pixelRatio": 2, "mobile": True}
            options["mobileEmulation"] = {"deviceMetrics": metrics}
        logging = {"browser": "ALL", "performance": "ALL"}
        return {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logging}

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        self._call("POST", f"{self.base}/url", {"url": url})

    def run(self, script: str, *args: Any) -> Any:
        """The value of a function body in the page."""
        return self._call("POST", f"{self.base}/execute/sync", {"script": script, "args": list(args)})

    def type(self, selector: str, text: str) -> None:
        found = self._call("POST", f"{self.base}/element", {"using": "css selector", "value": selector})
        self._call("POST", f"{self.base}/element/{next(iter(found.values()))}/value", {"text": text})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """Entries of the console (``browser``) or of the network (``performance``) since the last call."""
        return list(self._call("POST", f"{self.base}/se/log", {"type": kind}))

    def requests(self) -> list[str]:
        """Addresses that the page asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def command(self, name: str, parameters: dict[str, Any]) -> Any:
        return self._call("POST", f"{self.base}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def screenshot(self, file: Path, whole: bool = True) -> None:
        """PNG of the whole page, or of what the window shows."""
        shot = self.command("Page.captureScreenshot", {"captureBeyondViewport": whole, "format": "png"})
        file.write_bytes(base64.b64decode(shot["data"]))
