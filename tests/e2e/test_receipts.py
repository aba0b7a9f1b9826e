"""Receipts: what was delivered, signed, at either side; `ccixfer verify` names what is not as it says; --verify reads back."""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from lab import BINARY, Lab, PATIENCE_S, big_file, check, native, run, same_tree, small_tree
from test_security import Account, Pair, ends


def lines_of(receipt):
    return [json.loads(line) for line in receipt.read_text().splitlines()]


def entries_of(receipt):
    def name(entry):
        return os.fsencode(entry["path"]) if "path" in entry else base64.b64decode(entry["path64"])
    return {name(line): line for line in lines_of(receipt) if "type" in line}


def verify(account, *arguments):
    ended = account.run("verify", *arguments)
    return ended.returncode, sorted(line for line in ended.stdout.splitlines() if line), ended.stderr


def names_below(tree):
    return {os.fsencode(path.relative_to(tree)) for path in tree.rglob("*")}


def test_receipt__push__both_sides_list_the_tree_and_it_verifies():
    with Lab("receipt") as lab:
        source = small_tree(lab.directory / "tree")
        (source / "a\\b\nc").write_text("odd")
        (source / "-").write_text("no standard input")
        receipts = lab.directory / "receipts"
        receipts.mkdir()
        pair = Pair(lab, ("--receipt", receipts))
        for wanted in ("ok", "unchanged"):   # files that were there are listed too
            sender = pair.send("-a", "--verify", "--receipt", lab.directory / "mine", f"{source}/", pair.uri + "/x/")
            ends(sender, 0)
        same_tree(source, pair.root / "x")
        check(pair.receiver.stop() == 0, pair.receiver.tail())
        mine, (theirs,) = lab.directory / "mine", [path for path in receipts.iterdir() if path.name.startswith(sender.wait_event("session")["transfer"])]
        for receipt, signer in ((mine, pair.alice), (theirs, pair.bob)):
            check(set(entries_of(receipt)) == names_below(source), f"{set(entries_of(receipt)) ^ names_below(source)}")
            check(lines_of(receipt)[-1]["signature"]["id"] == signer.id, f"{lines_of(receipt)[-1]}")
        check(entries_of(mine) == entries_of(theirs), "the two sides say different things")
        # Each with its own directory, and the sender's with the receiver's.
        for account, arguments in ((pair.alice, (mine,)), (pair.bob, (theirs,)), (pair.bob, (mine, pair.root / "x", "--signer", "alice"))):
            code, said, words = verify(account, *arguments)
            check((code, said) == (0, []), f"{arguments}: {code} {said} {words}")
        with open(mine, "rb") as receipt:
            piped = subprocess.run([BINARY, "verify", "-", pair.root / "x"], stdin=receipt, capture_output=True, text=True,
                                   env={**os.environ, **pair.alice.env}, check=False, timeout=PATIENCE_S)
        check((piped.returncode, piped.stdout) == (0, ""), f"from standard input: {piped}")
        printed = subprocess.run([BINARY, "verify", "--sha256sum", theirs], capture_output=True, env={**os.environ, **pair.bob.env}, check=False)
        check(printed.returncode == 0, f"{printed.stderr}")
        (lab.directory / "sums").write_bytes(printed.stdout)   # names of any bytes
        checked = subprocess.run(["sha256sum", "--quiet", "-c", lab.directory / "sums"], cwd=pair.root / "x", stdin=subprocess.DEVNULL,
                                 capture_output=True, check=False)
        check(checked.returncode == 0, f"{checked.stdout + checked.stderr}")
        check(len(printed.stdout.splitlines()) == sum(entry["type"] == "file" for entry in entries_of(theirs).values()), "not each file has a sum")


def test_receipt__files_with_further_names__each_has_its_digest():
    with Lab("receipt-linked") as lab:
        source = lab.directory / "tree"
        source.mkdir()
        for number in range(4):
            big_file(source / f"file-{number}", 24 << 20)
            for name in "abc":
                os.link(source / f"file-{number}", source / f"file-{number}-{name}")
        receipts = lab.directory / "receipts"
        receipts.mkdir()
        pair = Pair(lab, ("--receipt", receipts))
        ends(pair.send("-aH", f"{source}/", pair.uri + "/x/"), 0)
        check(pair.receiver.stop() == 0, pair.receiver.tail())
        (receipt,) = receipts.iterdir()
        code, said, words = verify(pair.bob, receipt)
        check((code, said) == (0, []), f"{code} {said} {words}")


def test_receipt__tree_was_altered__each_altered_missing_and_extra_entry_is_named():
    with Lab("receipt-altered") as lab:
        source = lab.directory / "tree"
        (source / "d/e").mkdir(parents=True)
        for name in ("content", "size", "mode", "time", "gone", "link was file", "d/e/deep"):
            (source / name).write_text("x" * 10)
        os.symlink("size", source / "link")
        pair = Pair(lab)
        receipt = lab.directory / "receipt"
        ends(pair.send("-a", "--receipt", receipt, f"{source}/", pair.uri + "/x/"), 0)
        tree = pair.root / "x"
        elsewhere = lab.directory / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "deep").write_text("x" * 10)
        stat = (tree / "content").stat()
        (tree / "content").write_text("y" * 10)
        os.utime(tree / "content", ns=(stat.st_atime_ns, stat.st_mtime_ns))
        (tree / "size").write_text("x")
        (tree / "mode").chmod(0o600)
        os.utime(tree / "time", ns=(0, 5))
        (tree / "gone").unlink()
        (tree / "link was file").unlink()
        os.symlink("mode", tree / "link was file")
        shutil.rmtree(tree / "d/e")
        os.symlink(elsewhere, tree / "d/e")   # what is behind it is not the tree's
        (tree / "link").unlink()
        os.symlink("mode", tree / "link")
        (tree / "more").write_text("z")
        code, said, words = verify(pair.bob, receipt, tree)
        check(code == 40, f"{code} {words}")
        status = {line.split(" (")[0]: line for line in said}
        for wanted in ("altered content", "altered size", "altered mode", "altered time", "missing gone", "altered link was file", "altered d/e",
                       "missing d/e/deep", "altered link", "extra more"):
            check(wanted in status, f"{wanted}: {said}")
        check(len(said) == 10, f"{said}")
        check("its content" in status["altered content"] and "mode 0600 and not 0644" in status["altered mode"], f"{said}")
        code, said, _ = verify(pair.bob, "--ignore-extra", receipt, tree)
        check(code == 40 and not any("extra" in line for line in said), f"{said}")


def test_receipt__changed_torn_or_foreign__one_line_and_its_exit_code():
    with Lab("receipt-hostile") as lab:
        source = lab.directory / "tree"
        source.mkdir()
        (source / "f").write_text("x")
        pair = Pair(lab)
        receipt = lab.directory / "receipt"
        ends(pair.send("--receipt", receipt, f"{source}/", pair.uri + "/x/"), 0)
        good = receipt.read_bytes()
        lines = good.splitlines(keepends=True)
        def outcome(content, *arguments, account=pair.bob):
            receipt.write_bytes(content)
            code, said, words = verify(account, receipt, pair.root / "x", *arguments)
            check(said == [] and len([line for line in words.splitlines() if not line.startswith("ccixfer: the signer")]) <= 2, f"{said} {words}")
            return code, words
        check(outcome(good)[0] == 0, outcome(good)[1])
        check(outcome(good.replace(b'"size":1', b'"size":2'))[0] == 40, "the counts differ")
        changed = good.replace(b'"path":"f"', b'"path":"g"')
        check(outcome(changed)[0] == 41 and "changed, or is forged" in outcome(changed)[1], outcome(changed)[1])
        check(outcome(good, "--signer", pair.bob.id)[0] == 41, "another signer")
        check(outcome(good, "--signer", pair.alice.id)[0] == 0, "the signer")
        eve = Account(lab, "eve").keygen()
        check(outcome(b"".join(lines[:-1]) + lines[-1].replace(pair.alice.id.encode(), eve.id.encode()))[0] == 41, "it names another")
        for cut in (1, 40, len(good) - 1, len(good) - len(lines[-1]), len(lines[0])):
            code = outcome(good[:cut])[0]
            check(code == (1 if cut < len(lines[0]) else 40), f"cut at {cut}: {code}")
        for foreign in (b"", b"hello\n", b"{}\n", b"\0" * 1000, os.urandom(100_000), b"[" * 60_000 + b"\n"):
            check(outcome(foreign)[0] == 1, f"{foreign[:20]}")
        check(outcome(good.replace(b'"receipt":1', b'"receipt":2'))[0] == 2, "a later version")
        unsigned = b"".join(lines[:-1]) + b'{"signature":null}\n'
        check(outcome(unsigned)[0] == 41, "nobody signed it")
        check(outcome(unsigned, "--insecure")[0] == 0, "asked for all the same")
        check(pair.bob.run("verify", lab.directory / "nothing").returncode == 1, "no receipt there")


def test_receipt__pull_and_insecure__signed_by_whom_there_is():
    with Lab("receipt-pull") as lab:
        source = small_tree(lab.directory / "tree", files=30)
        receipts = lab.directory / "receipts"
        receipts.mkdir()
        server = lab.start_ready(None, "serve", "send", "--serve", lab.directory / "tree", "--listen", "127.0.0.1:0", "--insecure", "--receipt", receipts)
        pull = lab.start(None, "pull", "recv", "--insecure", "-a", "--verify", "--receipt", lab.directory / "mine", native(server.uris) + "/", lab.directory / "d")
        ends(pull, 0, "nobody signed the receipt")
        check(server.stop() == 0, server.tail())
        same_tree(source, lab.directory / "d")
        (theirs,) = receipts.iterdir()
        account = Account(lab, "nobody")
        for receipt in (lab.directory / "mine", theirs):
            check(set(entries_of(receipt)) == names_below(source), f"{set(entries_of(receipt)) ^ names_below(source)}")
            code, said, words = verify(account, "--insecure", receipt)
            check((code, said) == (0, []), f"{code} {said} {words}")


def test_receipt__file_of_many_pieces_and_a_failed_one__the_rest_is_listed():
    with Lab("receipt-partial") as lab:
        source = lab.directory / "tree"
        source.mkdir()
        big_file(source / "large", 60 << 20)
        (source / "f").write_text("x")
        pair = Pair(lab)
        (pair.root / "x/f/in the way").mkdir(parents=True)
        receipt = lab.directory / "receipt"
        ends(pair.send("-a", "--receipt", receipt, f"{source}/", pair.uri + "/x/"), 23)
        check(set(entries_of(receipt)) == {b"large"}, f"{entries_of(receipt)}")
        check(entries_of(receipt)[b"large"]["sha256"] == run("sha256sum", source / "large").stdout.split()[0], "another digest")
        check(lines_of(receipt)[0]["status"] == "partial", f"{lines_of(receipt)[0]}")


def test_receipt__specials_that_were_delivered__are_no_difference():
    """A receipt lists files, directories and links: of other kinds it says nothing, and verify neither."""
    with Lab("receipt-specials") as lab:
        source = lab.directory / "tree"
        (source / "d").mkdir(parents=True)
        for name in ("f", "d/g", "was file"):
            (source / name).write_text("x")
        for name in ("fifo", "d/fifo"):
            os.mkfifo(source / name)
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(source / "socket"))
        bound.close()
        pair = Pair(lab, grants='write = ["x/"]\nsetid = true\ndevices = true')
        receipt = lab.directory / "receipt"
        ends(pair.send("-a", "--receipt", receipt, f"{source}/", pair.uri + "/x/"), 0)
        tree = pair.root / "x"
        check((tree / "fifo").is_fifo() and (tree / "d/fifo").is_fifo() and (tree / "socket").is_socket(), "they were not delivered")
        code, said, words = verify(pair.bob, receipt, tree)
        check((code, said) == (0, []), f"{code} {said} {words}")
        (tree / "was file").unlink()
        os.mkfifo(tree / "was file")
        code, said, words = verify(pair.bob, receipt, tree)
        check(code == 40 and said == ["altered was file (1 bytes): it was a file"], f"{code} {said} {words}")


def test_receipt__verify_with_json__each_event_is_one_of_the_schema():
    with Lab("receipt-json") as lab:
        source = lab.directory / "tree"
        source.mkdir()
        for name in ("altered", "missing", "same"):
            (source / name).write_text("x")
        pair = Pair(lab)
        receipt = lab.directory / "receipt"
        ends(pair.send("-a", "--receipt", receipt, f"{source}/", pair.uri + "/x/"), 0)
        tree = pair.root / "x"
        (tree / "altered").write_text("longer")
        (tree / "missing").unlink()
        (tree / "extra").write_text("x")
        # The Lab checks that each event fits the schema.
        process = lab.start(None, "verify", "verify", receipt, tree, env=pair.bob.env)
        check(process.wait() == 40 and process.done()["status"] == "integrity", process.tail())
        statuses = {event["path"]: event["status"] for event in process.events if event["event"] == "file"}
        check(statuses == {name: name for name in ("altered", "missing", "extra")}, f"{statuses}")
        (signed,) = [event for event in process.events if event["event"] == "signed"]
        check(signed["id"] == pair.alice.id, f"{signed}")


def test_receipt__verify_is_told_to_end__it_does_and_says_so():
    """Of a file that nobody reads to its end in the time of a test."""
    with Lab("receipt-signal") as lab:
        tree = lab.directory / "tree"
        tree.mkdir()
        with open(tree / "f", "wb") as file:
            file.truncate(1 << 40)
        stat = (tree / "f").stat()
        lines = [{"receipt": 1, "side": "source", "transfer": "00" * 16, "peer": "tcp://127.0.0.1:1", "path": "x", "directory": str(tree), "archive": True,
                  "time": 1, "status": "ok"},
                 {"type": "file", "path": "f", "size": 1 << 40, "mtime": stat.st_mtime_ns // 10**9, "mtime_ns": stat.st_mtime_ns % 10**9, "mode": "0644",
                  "sha256": "00" * 32},
                 {"end": True, "files": 1, "directories": 0, "links": 0, "bytes": 1 << 40}, {"signature": None}]
        receipt = lab.file("receipt", "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        for number in (signal.SIGTERM, signal.SIGINT):
            process = lab.start(None, "verify", "verify", "--insecure", receipt)
            until_it_reads(process, tree / "f")
            process.kill(number)
            check(process.wait(30) == 20 and process.done()["status"] == "interrupted", process.tail())
            check(not [event for event in process.events if event["event"] == "file"], f"of a file that was not read: {process.events}")


def until_it_reads(process, file):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        check(time.monotonic() < deadline and process.process.poll() is None, f"it does not read: {process.tail()}")
        for number in os.listdir(f"/proc/{process.process.pid}/fd"):
            try:
                if os.readlink(f"/proc/{process.process.pid}/fd/{number}") == str(file):
                    return
            except FileNotFoundError:
                pass   # it was closed meanwhile
        time.sleep(0.02)
