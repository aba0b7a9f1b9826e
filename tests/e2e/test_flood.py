"""Ten thousand who dial a receiver and never prove who they are: an honest sender is served meanwhile, and memory stays bounded."""
import errno
import os
import resource
import select
import socket

from lab import Lab, check, native, same_tree, small_tree
from test_security import Pair, ends

FLOOD = int(os.environ.get("CCIXFER_E2E_FLOOD", 10_000))
SPARE_DESCRIPTORS = 500   # of this process and of the receiver, for all else
PENDING_MAX = 1024        # ports::TransportOptions::pending_requests_max
HALF_OPEN_KIB = 64        # the most that one may cost before its proof, generously (core/trust/README.md: 46 KB)


def first_flight(lab, account):
    """What a dialler says first: the frame with its ClientHello."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = lab.start(None, "listened", "send", "--timeout", "2", lab.file("nothing", "x"), f"tcp://127.0.0.1:{listener.getsockname()[1]}/f",
                           env=account.env)
        taken, _ = listener.accept()
        with taken:
            said = taken.recv(4096)
        sender.kill()
    sender.wait()
    length = int.from_bytes(said[2:4], "little")
    check(said[0] == 17 and length == len(said), f"not one handshake frame: {said[:20]}")
    return said


class Flood:
    """Keeps as many connections half-open as descriptors and the receiver allow; whoever is dropped is followed by another one."""

    def __init__(self, address, sayings):
        self.address, self.sayings = address, sayings
        self.opened, self.dropped, self.open = 0, 0, {}
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.most = min(FLOOD, hard - SPARE_DESCRIPTORS)
        self.poll = select.epoll()
        self.limits = (soft, hard)

    def dial(self):
        one = socket.socket()
        one.setblocking(False)
        if one.connect_ex(self.address) not in (0, errno.EINPROGRESS):
            one.close()
            return
        self.open[one.fileno()] = one
        self.poll.register(one, select.EPOLLIN | select.EPOLLOUT | select.EPOLLONESHOT)

    def leave(self, one):
        del self.open[one.fileno()]
        one.close()

    def go_on(self):
        """One round: up to 200 more dial, those that are connected say what they say, those that were dropped are followed."""
        for _ in range(min(200, self.most - len(self.open))):
            self.dial()
        for number, events in self.poll.poll(0.01):
            one = self.open[number]
            try:
                if events & select.EPOLLOUT:
                    error = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if error:
                        raise OSError(error, "")
                    one.send(self.sayings[self.opened % len(self.sayings)]) if self.sayings[self.opened % len(self.sayings)] else None
                    self.opened += 1
                elif not one.recv(4096):
                    raise OSError(errno.ECONNRESET, "")
                self.poll.modify(one, select.EPOLLIN | select.EPOLLONESHOT)
            except BlockingIOError:
                self.poll.modify(one, select.EPOLLIN | select.EPOLLONESHOT)
            except OSError:
                self.dropped += 1
                self.leave(one)

    def end(self):
        for one in list(self.open.values()):
            self.leave(one)
        self.poll.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)


def test_flood_of_half_open_handshakes__ten_thousand__an_honest_sender_is_served():
    with Lab("flood") as lab:
        source = small_tree(lab.directory / "tree", files=20)
        pair = Pair(lab, ("--memory", "32MiB"))
        host, port = pair.uri.removeprefix("tcp://").rsplit(":", 1)
        hello = first_flight(lab, pair.alice)
        ends(pair.send("-a", f"{source}/", pair.uri + "/x/"), 0)
        before_kib = pair.receiver.peak_kib()
        # Nothing; the head of a frame; half of a ClientHello; a whole one, and no answer to what the receiver then says; nonsense.
        flood = Flood((host, int(port)), (b"", hello[:3], hello[:len(hello) // 2], hello, b"\x16\x03\x01" + bytes(200)))
        try:
            served = 0
            sender = None
            # Those that are dropped are followed, so that there are as many all the time; without descriptors for ten thousand at a
            # time they come in waves.
            while flood.opened < FLOOD or served < 3:
                flood.go_on()
                if flood.opened < min(PENDING_MAX + 200, flood.most):
                    continue
                if sender is None:
                    # As long as one that says nothing has for its handshake, it would not wait.
                    sender = pair.send("-a", "--timeout", "8", f"{source}/", pair.uri + f"/x/{served}/", name="honest")
                elif sender.ended:
                    ends(sender, 0)
                    same_tree(source, pair.root / "x" / str(served))
                    served, sender = served + 1, None
            if sender is not None:
                while not sender.ended:
                    flood.go_on()
                ends(sender, 0)
            after_kib = pair.receiver.peak_kib()
            check(pair.receiver.process.poll() is None, pair.receiver.tail())
        finally:
            flood.end()
        if os.environ.get("CCIXFER_E2E_VERBOSE"):
            print(f"opened {flood.opened}, dropped {flood.dropped}, at most {flood.most}; served {served}; {before_kib} -> {after_kib} KiB")
        check(after_kib < before_kib + PENDING_MAX * HALF_OPEN_KIB, f"memory went from {before_kib} to {after_kib} KiB")
        ends(pair.send("-a", f"{source}/", pair.uri + "/x/"), 0)
        check(pair.receiver.stop() == 0, pair.receiver.tail())
        counters = pair.receiver.done()["counters"]
        check(counters["hello_rejected"] > 0, f"nobody was dropped: {counters}")
