// First inputs of the targets that take texts, files, and the messages of a measurement.
#include "app/bench/messages.h"
#include "app/receipt/format.h"
#include "app/trust/ticket_rows.h"
#include "tests/fuzz/corpus.h"

namespace ccixfer::fuzz {
namespace {

void bench_messages() {
  const auto keep = [](const std::vector<std::byte>& bytes) { put("bench_messages", bytes); };
  ports::Handle region, mailbox;
  region.kind = ports::HandleKind::region;
  mailbox.kind = ports::HandleKind::mailbox;
  keep(bench::encode_hello(bench::Purpose::session));
  keep(bench::encode_hello(bench::Purpose::extra));
  keep(bench::encode(bench::Open{4096, 4, 8, 64, region, mailbox}));
  keep(bench::encode(bench::Opened{region, mailbox, mailbox, bench::Wait::spin}));
  keep(bench::encode_address(region));
  keep(bench::encode_want(4096));
  keep(bench::encode_padded(bench::Kind::echo, 8));
}

void texts_and_files() {
  for (const char* text : {"cci://1:2:10.0.0.1:4000", "cci://1:2:[fe80::1]:4000", "tcp://host:99", "tcp://[fe80::1]:99/path/",
                           "64KiB", "10Gb/s", "800MB/s", "1.5GB", "1.5ms", "2min", "host:/path"}) {
    put("texts", as_bytes(text));
  }
  for (const char* text : {R"([device.lan]
transport = "tcp"
ip = "10.0.0.2"
port = 7000
as = 1
subnet = 1
router = ["tcp://10.0.0.1:7000"]
rate = "10Gb/s"
default = true
)",
                           R"([device.wan]
interface = "eth0"
as = 1
subnet = 9
router = ["tcp://192.0.2.1:7000"]
wan = true
wan_to = [2, 3]
priority = 7
transit = false

[router]
metric = ["bandwidth", "hops"]
fragment = "1MiB"
memory = "64MiB"

[[router.static]]
from = 1
to = "2:1"
via = [9]
)",
                           R"([metrics]
listen = "[::]:9464"
names = false
certificate = "web.pem"
key = "/etc/ccixfer/web.key"
token = "token"
)"}) {
    put("config", as_bytes(text));
  }
  for (const char* text : {R"(seed = 1

[link.lan]
delay = ["50us", "2ms"]
rate = "100Mb/s"
reset_mean = "2s"
dial_failure = 0.1

[node.a]
links = ["lan"]

[node.b]
links = ["lan"]

[[transfer]]
name = "t"
from = "a"
to = "b"
entries = 20
large = "12MiB"

[[fault]]
at = "300ms"
kind = "crash"
node = "b"
for = "1s"
)",
                           R"([link.one]
as = 1
subnet = 1

[link.two]
as = 1
subnet = 2

[node.a]
links = ["one"]

[node.b]
links = ["two"]

[router.r]
links = ["one", "two"]
fragment = "64KiB"

[[transfer]]
name = "t"
from = "a"
to = "b"
routed = true
entries = 3

[[fault]]
at = "1s"
kind = "stop"
node = "r"
)"}) {
    put("scenario", as_bytes(text));
  }
}

void tickets() {
  policy::TicketRow fresh;
  fresh.number = {1, 2, 3, 4, 5, 6, 7, 8};
  fresh.secret = {9, 10, 11};
  fresh.expires_s = 1'800'086'400;
  fresh.uses_left = 3;
  fresh.root = "/srv/incoming";
  policy::TicketRow used = fresh;
  used.uses_left = 0;
  used.direction = policy::Direction::read;
  used.root = "/a b\n%\xff";
  used.delivered = {{{1, 2}, 1'800'000'000}, {{3, 4}, 1'800'000'001}};
  put("ticket_rows", as_bytes(policy::format_ticket_rows({fresh, used})));
}

void http_requests() {
  for (const char* text : {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                           "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n",
                           "HEAD /status.json?x=1 HTTP/1.0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n",
                           "GET /events HTTP/1.1\r\nHost: [::1]:9464\r\nSec-Fetch-Site: same-origin\r\n\r\n",
                           "GET /status.json HTTP/1.1\r\nHost: rebound.example\r\n\r\n",
                           "GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                           "POST /metrics HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n",
                           "GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                           "GET /metrics HTTP/1.1\r\nAuthorization: Bearer 0123456789abcdef0123\r\n\r\n",
                           "GET / HTTP/1.1\r\nAuthorization: Basic YTowMTIzNDU2Nzg5YWJjZGVmMDEyMw==\r\n\r\n",
                           "GET / HTTP/1.1\r\nAuthorization: Basic ====\r\n\r\n", "\x16\x03\x01\x02\x01\x01"}) {
    for (const char piece : {'\xff', '\x06'}) put("http_request", as_bytes(piece + std::string(text)));
  }
}

void security_of_config() {
  put("config", as_bytes(R"([identity]
certificate = "host.pem"
key = "host.key"
ca = "ca.pem"
crl = "/etc/crl.pem"

[peer.lab]
name = "dtn1.lab.example"
address = ["tcp://dtn1.lab.example:7000", "cci://1:2:10.0.0.2:7100"]
write = ["incoming/x/", "."]
read = "published"
quota = "10TiB"
rate = "5Gb/s"
entries = 10
devices = false
setid = true

[peer.router]
id = "cx1-aeaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aaaa"
route = true
router = true
as = 4
admin = true
)"));
}

void receipts() {
  const auto keep = [](const std::string& line) {
    put("receipt_lines", as_bytes(std::string_view(line).substr(0, line.size() - 1)));
  };
  receipt::Header header;
  header.side = receipt::Side::destination;
  header.transfer = "5f0c";
  header.peer = "tcp://10.0.0.2:7000";
  header.path = "incoming/run42";
  header.directory = "/data/incoming/run42";
  header.archive = true;
  header.time_s = 1'764'045'000;
  header.status = "ok";
  keep(receipt::encode(header));
  receipt::Entry file;
  file.path = "d/a";
  file.size_bytes = 3;
  file.mtime = {-5, 999'999'999};
  file.mode = 04711;
  file.sha256 = trust::Sha256Digest{1, 2, 3};
  keep(receipt::encode(file));
  file.path = "not utf8 \xff";
  file.sha256.reset();
  keep(receipt::encode(file));
  receipt::Entry link;
  link.type = receipt::EntryType::link;
  link.path = "l";
  link.target = "../elsewhere";
  keep(receipt::encode(link));
  receipt::Entry directory;
  directory.type = receipt::EntryType::directory;
  directory.path = "d";
  directory.mode = 0755;
  keep(receipt::encode(directory));
  keep(receipt::encode(receipt::End{2, 1, 1, 6}));
  keep(receipt::encode(receipt::Signed{"cx1-abcd", {"key", "value"}}));
  keep(receipt::encode(receipt::Signed{}));
}

}  // namespace

void make_texts() {
  bench_messages();
  texts_and_files();
  receipts();
  security_of_config();
  http_requests();
  tickets();
}

}  // namespace ccixfer::fuzz
