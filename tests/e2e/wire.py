"""Somebody on the wire: a TCP proxy that records all that passes and does one bad thing to it.

What it attacks is an offset of one direction of a connection, or the frame or record that this offset is in (core/wire/README.md).
Behind the first bulk payload it cannot tell where records begin, as the headers that would say so are sealed; from there on it
takes what came at once for one.
"""
import contextlib
import random
import socket
import struct
import threading

BYTES = ("flip", "cut out", "inject", "truncate")
RECORDS = ("drop", "twice", "swap", "replay")
STALL = "stall"         # nothing comes after that, and nobody hangs up
WAYS = ("up", "down")   # from who dials, and to it
HANDSHAKE, SEALED = 17, 18


class Attack:
    """`connection`: the number of the one that is attacked, as they were dialled; None: every one."""

    def __init__(self, kind, way, at, connection=None, seed=0):
        self.kind, self.way, self.at, self.connection, self.seed = kind, way, at, connection, seed

    def __str__(self):
        return f"{self.kind} at byte {self.at} {self.way} of connection {'each' if self.connection is None else self.connection}"


def record_bytes(text):
    """Of the handshake frame or sealed record that begins there; 0: more is needed to say; None: neither begins there."""
    if not text:
        return 0
    if text[0] not in (HANDSHAKE, SEALED):
        return None
    if len(text) < 4:
        return 0
    length = struct.unpack_from("<H", text, 2)[0]
    return length if text[0] == HANDSHAKE else length + 20


class Stream:
    """One direction of an attacked connection: bytes in, bytes out."""

    def __init__(self, attack):
        self.attack, self.done, self.ended, self.bulk = attack, False, False, False
        self.passed, self.waiting, self.held, self.first = 0, b"", None, b""
        self.random = random.Random(attack.seed)

    def take(self, text):
        if self.done and self.attack.kind == STALL:
            return b""
        if self.done and self.held is None:
            return text
        return self.take_records(text) if self.attack.kind in RECORDS else self.take_bytes(text)

    def take_bytes(self, text):
        at = self.attack.at - self.passed
        self.passed += len(text)
        if at >= len(text):
            return text
        self.done = True
        if self.attack.kind == "flip":
            return text[:at] + bytes([text[at] ^ 1 << self.random.randrange(8)]) + text[at + 1:]
        if self.attack.kind == "cut out":
            return text[:at] + text[at + self.random.randrange(1, 300):]
        if self.attack.kind == "inject":
            return text[:at] + self.random.randbytes(self.random.choice((1, 20, 300))) + text[at:]
        self.ended = self.attack.kind != STALL
        return text[:at]

    def take_records(self, text):
        out, self.waiting = b"", self.waiting + text
        while self.waiting:
            length = None if self.bulk else record_bytes(self.waiting)
            if length is None:
                self.bulk, length = True, len(self.waiting)
            if length == 0 or length > len(self.waiting):
                break
            record, self.waiting = self.waiting[:length], self.waiting[length:]
            out += self.take_record(record)
        return out

    def take_record(self, record):
        self.first = self.first or record
        self.passed += len(record)
        if self.held is not None:
            record, self.held = record + self.held, None
            return record
        if self.done or self.passed <= self.attack.at:
            return record
        self.done = True
        if self.attack.kind == "swap":
            self.held = record
            return b""
        return {"drop": b"", "twice": 2 * record, "replay": record + self.first}[self.attack.kind]


class Wire:
    """Listens, and passes on to `port` of this host. `host`: its namespace is the caller's."""

    def __init__(self, port, attack=None, keeps=True):
        self.to, self.attack, self.keeps = port, attack, keeps
        self.connections = []   # {"up": bytearray, "down": bytearray}: as it came, before the attack; empty unless `keeps`
        self.ends = []          # of each connection: its two sockets
        self.attacked = 0       # connections to which it was done
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            number = len(self.connections)
            self.connections.append({way: bytearray() for way in WAYS})
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                near.close()
                continue
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.ends.append((near, far))
            ends = {"left": 2}
            for way, source, sink in (("up", near, far), ("down", far, near)):
                threading.Thread(target=self.pump, args=(number, way, source, sink, ends), daemon=True).start()

    def pump(self, number, way, source, sink, ends):
        attack = self.attack
        is_target = attack is not None and attack.way == way and attack.connection in (None, number)
        stream = Stream(attack) if is_target else None
        try:
            while text := source.recv(1 << 18):
                if self.keeps:
                    self.connections[number][way] += text
                if stream is not None:
                    was = stream.done
                    text = stream.take(text)
                    if stream.done and not was:
                        with self.lock:
                            self.attacked += 1
                sink.sendall(text)
                if stream is not None and stream.ended:
                    break
            sink.shutdown(socket.SHUT_WR)
            if stream is not None and stream.ended:
                source.shutdown(socket.SHUT_RD)
        except OSError:   # one end was reset: so is the other
            for end in (source, sink):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        with self.lock:
            ends["left"] -= 1
            last = ends["left"] == 0
        if last:
            source.close()
            sink.close()

    def cut(self, first):
        """Ends the connections from that one on."""
        for both in self.ends[first:]:
            for end in both:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def lengths(self):
        """What passed: {(connection, way): bytes}."""
        return {(number, way): len(text) for number, both in enumerate(self.connections) for way, text in both.items()}

    def holds(self, words):
        return any(words in text for both in self.connections for text in both.values())
