"""Chromium without a window, driven by the DevTools protocol over two pipes: for the tests of the page."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-headless-shell", "google-chrome")


def program():
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One tab. `requests` has the addresses that it asked for, `faults` what went wrong in its console."""

    def __init__(self, width=1200, height=900):
        self.profile = tempfile.mkdtemp(prefix="pando-browser-")
        its_input, our_output = os.pipe()
        our_input, its_output = os.pipe()
        words = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", f"--user-data-dir={self.profile}",
                 "--remote-debugging-pipe", "about:blank"]
        # The protocol's descriptors are 3 and 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{its_input} 4>&{its_output}', "bash", *words],
            pass_fds=(its_input, its_output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(its_input)
        os.close(its_output)
        self.output = os.fdopen(our_output, "wb", buffering=0)
        self.input = os.fdopen(our_input, "rb", buffering=0)
        self.unread, self.number, self.session = b"", 0, None
        self.requests, self.faults = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def close(self):
        """Ends the browser with all of its processes."""
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(20)
        except (OSError, EOFError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.output.close()
        self.input.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    # The protocol: messages of JSON that end with a zero octet.

    def call(self, method, **words):
        self.number += 1
        message = {"id": self.number, "method": method, "params": words}
        if self.session:
            message["sessionId"] = self.session
        self.output.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def receive(self):
        while b"\0" not in self.unread:
            data = self.input.read(1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self.unread += data
        text, _, self.unread = self.unread.partition(b"\0")
        message = json.loads(text)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, event, words):
        if event == "Network.requestWillBeSent":
            self.requests.append(words["request"]["url"])
        if event == "Runtime.exceptionThrown":
            self.faults.append(words["exceptionDetails"].get("exception", {}).get("description") or str(words))
        if event == "Log.entryAdded" and words["entry"]["source"] in ("security", "violation"):
            self.faults.append(words["entry"]["text"])
        if event == "Page.javascriptDialogOpening":
            self.faults.append(f"a dialog: {words['message']}")

    # What people do.

    def open(self, address):
        self.call("Page.navigate", url=address)

    def run(self, expression):
        """The value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (expression, result["exceptionDetails"])
        return result["result"].get("value")

    def wait(self, expression, seconds=30):
        """Waits until an expression is true, and gives its value. While a page loads, it may fail."""
        end = time.monotonic() + seconds
        patient = f"(() => {{ try {{ return {expression} }} catch {{ return null }} }})()"
        while time.monotonic() < end:
            if value := self.run(patient):
                return value
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {expression}\n{self.run('document.body.innerText')}\n{self.faults}")

    def texts(self, selector):
        """Texts of the elements that can be seen."""
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})]"
                        ".filter(one => one.checkVisibility()).map(one => one.innerText.trim())")

    def press(self, key):
        """A key by its name, such as Enter, or a letter."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39}
        words = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **words)
        self.call("Input.dispatchKeyEvent", type="keyUp", **words)

    def type(self, text):
        for letter in text:
            self.press(letter)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, **features):
        """Preferences of the user: prefers_color_scheme="dark" and the like."""
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def screenshot(self):
        """A picture of what can be seen, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
