"""Headless Chromium (Debian's), driven over its pipe by the DevTools protocol: pages are read, looked at and photographed.

No port is opened, and a host's browser runs in its network namespace. What a test waits for is told by the page itself when it changes.
"""
import base64
import fcntl
import json
import os
import shutil
import subprocess
import threading

from lab import PATIENCE_S, Failure, check

PROGRAM = shutil.which("chromium")


class Browser:
    def __init__(self, directory, host=None, options=()):
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (to_read, to_write)]   # 3 and 4 may be those of somebody else here

        def child():
            for fd, number in zip(high, (3, 4)):
                os.dup2(fd, number)
        profile = directory / "browser"
        self.process = subprocess.Popen(
            [*(host.prefix if host else []), PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", *options, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(directory / "browser.stderr", "w"),
            env={**os.environ, "HOME": str(directory)}, pass_fds=(3, 4), preexec_fn=child)
        for fd in (to_read, to_write, *high):
            os.close(fd)
        self.answers, self.events, self.news, self.last, self.ended = {}, [], threading.Condition(), 0, False
        threading.Thread(target=self.read, daemon=True).start()
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def read(self):
        rest = b""
        while chunk := os.read(self.read_end, 1 << 16):
            *whole, rest = (rest + chunk).split(b"\0")
            with self.news:
                for message in map(json.loads, whole):
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def call(self, method, **arguments):
        with self.news:
            self.last += 1
            number = self.last
        message = {"id": number, "method": method, "params": arguments, **({"sessionId": self.session} if self.session else {})}
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        with self.news:
            if not self.news.wait_for(lambda: number in self.answers or self.ended, PATIENCE_S) or number not in self.answers:
                raise Failure(f"the browser does not answer to {method}")
            answer = self.answers.pop(number)
        check("error" not in answer, f"{method}: {answer}")
        return answer["result"]

    def open(self, address):
        def loads():
            return sum(event["method"] == "Page.loadEventFired" for event in self.events)
        with self.news:
            before = loads()
        result = self.call("Page.navigate", url=address)
        check("errorText" not in result, f"{address}: {result}")
        with self.news:   # what is asked before that is asked of the page that was there
            check(self.news.wait_for(lambda: loads() > before or self.ended, PATIENCE_S), f"{address} does not load")

    def sign_in(self, name, password):
        """To whatever asks for it from now on, as a person does in the browser's own dialogue."""
        def answer(event):
            number = event["params"]["requestId"]
            if event["method"] == "Fetch.requestPaused":
                self.call("Fetch.continueRequest", requestId=number)
            else:
                self.call("Fetch.continueWithAuth", requestId=number,
                          authChallengeResponse={"response": "ProvideCredentials", "username": name, "password": password})

        def watch():
            seen = 0
            while True:
                with self.news:
                    self.news.wait_for(lambda: len(self.events) > seen or self.ended)
                    if self.ended:
                        return
                    new, seen = self.events[seen:], len(self.events)
                for event in new:
                    if event["method"] in ("Fetch.requestPaused", "Fetch.authRequired"):
                        answer(event)
        self.call("Fetch.enable", handleAuthRequests=True)
        threading.Thread(target=watch, daemon=True).start()

    def ask(self, expression):
        """What a JavaScript expression, or the promise that it is, comes to."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        check("exceptionDetails" not in result, f"{expression}: {result}")
        return result["result"].get("value")

    def await_page(self, condition):
        """Until the JavaScript expression is true: it is asked again each time the page has changed."""
        fulfilled = self.ask(f"""new Promise((resolve) => {{
          const look = () => {{ if (!({condition})) return; observer.disconnect(); resolve(true); }};
          const observer = new MutationObserver(look);
          observer.observe(document, {{subtree: true, childList: true, characterData: true, attributes: true}});
          setTimeout(() => resolve(false), {int(PATIENCE_S * 500)});
          look();
        }})""")
        check(fulfilled, f"the page never was so: {condition}: {self.text()}")

    def text(self):
        return self.ask("document.body.innerText")

    def rows(self, section):
        """Of the table in a section: a list of dictionaries, by the heads of its columns."""
        return self.ask(f"""(() => {{
          const table = document.querySelector('#{section} table');
          if (!table || table.closest('section').hidden) return [];
          const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
          return [...table.tBodies[0].rows].map((row) => Object.fromEntries([...row.cells].map((cell, i) => [heads[i], cell.textContent])));
        }})()""")

    def set_width(self, width, dark=False, colours=True):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=width < 800)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setEmulatedVisionDeficiency", type="none" if colours else "achromatopsia")

    def photograph(self, name):
        """Into $CCIXFER_E2E_SCREENSHOTS, where somebody looks at them; and always taken."""
        picture = base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        check(picture.startswith(b"\x89PNG"), "no picture")
        if directory := os.environ.get("CCIXFER_E2E_SCREENSHOTS"):
            with open(os.path.join(directory, name + ".png"), "wb") as file:
                file.write(picture)

    def faults(self):
        """What the browser found wrong: exceptions, errors, and whatever the page asked for elsewhere than `origin`."""
        with self.news:
            events = list(self.events)
        wrong = [event["params"] for event in events if event["method"] == "Runtime.exceptionThrown"]
        return wrong + [event["params"]["entry"]["text"] for event in events
                        if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error"]

    def asked(self):
        with self.news:
            return [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]

    def close(self):
        os.close(self.write_end)
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
