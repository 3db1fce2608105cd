"""A headless Chromium for tests, over the DevTools protocol on a pair of pipes: nothing but the standard library."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium")


class Browser:
    """One page. Messages of its console that are errors, and every address it asks for, are kept."""

    def __init__(self, width=1280, height=900):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Chromium reads commands from descriptor 3 and answers on 4; high numbers first, so that neither overwrites the other.
        ends = [e for pair in (os.pipe(), os.pipe()) for e in pair]
        read, self.commands, self.answers, write = [fcntl.fcntl(e, fcntl.F_DUPFD_CLOEXEC, 20) for e in ends]
        for e in ends:
            os.close(e)
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}",
                   f"--window-size={width},{height}", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{read} 4>&{write}', "bash", *command], pass_fds=(read, write),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(read)
        os.close(write)
        self.buffer, self.id, self.session = b"", 0, None
        self.errors, self.addresses, self.loaded = [], [], False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.send(domain + ".enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.profile.cleanup()

    def send(self, method, **parameters):
        self.id += 1
        message = {"id": self.id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(60)
            if answer.get("id") != self.id:
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def receive(self, seconds):
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], seconds)[0]:
                raise TimeoutError("the browser does not answer")
            block = os.read(self.answers, 1 << 20)
            if not block:
                raise RuntimeError("the browser ended")
            self.buffer += block
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        self.note(message)
        return message

    def note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.addresses.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])

    def open(self, path):
        self.loaded, self.errors, self.addresses = False, [], []
        self.send("Page.navigate", url=path.as_uri())
        while not self.loaded:
            self.receive(60)

    def run(self, expression):
        """The value of a JavaScript expression; a promise is awaited."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description"))
        return result["result"].get("value")

    def wait(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while not (value := self.run(expression)):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.02)
        return value

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key):
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def pixel(self, x, y):
        """Red, green and blue of what is on the screen there."""
        png = "data:image/png;base64," + self.send("Page.captureScreenshot", format="png")["data"]
        return self.run(f"""(async () => {{ const i = new Image(); i.src = "{png}"; await i.decode();
          const c = document.createElement('canvas').getContext('2d'); c.canvas.width = i.width; c.canvas.height = i.height; c.drawImage(i, 0, 0);
          return [...c.getImageData({x}, {y}, 1, 1).data].slice(0, 3); }})()""")

    def screenshot(self, path, whole=False):
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]))
