// A whole transport against a peer that made its way through the handshake and then sends what it likes: first byte the attribute
// and, in its highest bit, whether every second packet comes from elsewhere; then packets, each a length (u8; odd: in the short
// form) and that many bytes of frames. Checked: it neither crashes nor writes outside its region, holds a bounded amount, and one
// peer's nonsense ends that peer's connection only.
#include <deque>
#include <memory>

#include "core/cci/memory_table.h"
#include "tests/fuzz/fuzz.h"
#include "transports/datagram/datagram_transport.h"
#include "transports/datagram/frames.h"

using namespace ccixfer;

namespace {

constexpr uint64_t peer_key = 77;

class Net final : public datagram::DatagramNet {
 public:
  std::deque<std::vector<std::byte>> in, out;
  uint32_t port = 4;  // from which the peer speaks
  [[nodiscard]] std::string_view scheme() const override { return "fuzz"; }
  [[nodiscard]] std::string uri() const override { return "fuzz://"; }
  [[nodiscard]] uint32_t datagram_bytes_max() const override { return datagram::datagram_bytes_min; }
  [[nodiscard]] Result<uint64_t> resolve(std::string_view) override { return fail(ErrorKind::usage, "no"); }
  [[nodiscard]] std::string host_of(const datagram::Address&) const override { return {}; }
  [[nodiscard]] datagram::Sent send(std::span<const datagram::Datagram> batch) override {
    for (const datagram::Datagram& each : batch) {
      if (out.size() < 64) out.emplace_back(each.bytes.begin(), each.bytes.end());
    }
    return {batch.size(), datagram::Sent::Stop::none};
  }
  void send_last(std::span<const datagram::Datagram> batch) override { static_cast<void>(send(batch)); }
  void poll(Instant, datagram::DatagramEvents& events) override {
    const auto came = std::exchange(in, {});
    std::vector<datagram::Datagram> batch;
    for (const auto& bytes : came) batch.push_back({{1, 2, 3, port}, bytes});
    if (!batch.empty()) events.received(batch);
  }
  void set_deadline(Instant) override {}
  [[nodiscard]] int os_handle() const override { return -1; }
};

class Sink final : public ports::TransportSink {
 public:
  ports::ConnectionId request;
  size_t accepted = 0, completions = 0;
  std::vector<std::byte> memory = std::vector<std::byte>(2048);
  void on_connect_request(ports::ConnectionId id, ports::Role, ports::Attribute, Bytes) override { request = id; }
  void on_connected(ports::ConnectionId, Status, ports::ConnectionLimits, std::string_view) override { fuzz::must(false); }
  void on_accepted(ports::ConnectionId, Status, ports::ConnectionLimits) override { ++accepted; }
  MutableBytes on_message_begin(ports::ConnectionId, uint32_t length) override {
    return length % 5 == 4 ? MutableBytes{} : MutableBytes(memory).first(length);
  }
  void on_message_end(ports::ConnectionId, bool) override {}
  void on_completion(ports::ConnectionId, uint64_t, ports::OperationResult) override { ++completions; }
  void on_disconnected(ports::ConnectionId, Status, std::string_view) override {}
  void on_keepalive_timeout(ports::ConnectionId) override {}
};

std::vector<std::byte> packet_of(const datagram::PacketHeader& header, Bytes body, size_t pad_to = 0) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  datagram::begin_packet(out, header);
  out.bytes(body);
  if (bytes.size() + datagram::packet_check_bytes < pad_to) out.zeros(pad_to - datagram::packet_check_bytes - bytes.size());
  datagram::end_packet(out);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  fuzz::Entropy entropy;
  Counters counters;
  cci::MemoryTable memory(entropy, counters);
  Sink sink;
  auto owned = std::make_unique<Net>();
  Net& net = *owned;
  ports::TransportOptions options;
  options.sends_in_flight_max = options.rmas_in_flight_max = 8;
  datagram::DatagramTransport transport({options}, std::move(owned), entropy, counters);
  transport.bind(sink, memory);
  Instant now{std::chrono::seconds(100)};
  const auto turn = [&] {
    now += std::chrono::milliseconds(1);
    transport.turn(now);
  };

  datagram::Hello hello;
  hello.attempt = 1;
  const bool comes_and_goes = (data[0] & 0x80) != 0;
  hello.attribute = static_cast<ports::Attribute>((data[0] & 0x7f) % 3);
  hello.offer = {1500, 8, 8};
  hello.datagram_bytes = datagram::datagram_bytes_min;
  const auto say_hello = [&] {
    std::vector<std::byte> body;
    wire::Writer out(body);
    datagram::encode(out, hello);
    net.in.push_back(
        packet_of({datagram::PacketKind::hello, datagram::packet_version, 0, 5, peer_key, 0}, body, datagram::hello_bytes_min));
    turn();
  };
  say_hello();
  hello.cookie = datagram::decode_cookie(datagram::open_packet(net.out.back())->body);
  say_hello();
  const auto reply = datagram::open_packet(net.out.back());
  wire::Reader in(reply->body);
  const auto frame = datagram::decode_frame(in);
  const uint64_t key = std::get<datagram::HelloReplyFrame>(*frame).key;
  const uint32_t index = reply->header.source;
  fuzz::must(transport.accept(sink.request) == Status::success);
  turn();

  std::vector<std::byte> region(5000, std::byte{0x55});
  const Bytes source(region);
  const auto handle = memory.register_region(MutableBytes(region).subspan(1000, 3000), cci::access_read | cci::access_write);
  fuzz::must(handle.number == 0);  // the corpus names it
  size_t issued = 0;
  for (uint64_t token = 0; token < 3; ++token)
    issued += transport.send(sink.request, {&source, 0}, token) == Status::success ? 1u : 0u;

  uint64_t number = 0;
  for (size_t at = 1; at < size;) {
    const size_t length = std::min<size_t>(data[at], size - at - 1);
    const bool is_short = length % 2 != 0;
    net.in.push_back(packet_of({datagram::PacketKind::data, datagram::packet_version, index, 5, key, number++, is_short},
                               fuzz::bytes_of(data + at + 1, length)));
    at += 1 + length;
    if (comes_and_goes) net.port ^= 1;
    turn();
    fuzz::must(transport.held_bytes() <= 8 * 1500);
  }
  for (size_t i = 0; i < 1000; ++i) fuzz::must(region[i] == std::byte{0x55});
  for (size_t i = 4000; i < region.size(); ++i) fuzz::must(region[i] == std::byte{0x55});
  now += std::chrono::seconds(100);
  for (int i = 0; i < 10; ++i) {
    now += std::chrono::seconds(10);
    transport.turn(now);
  }
  fuzz::must(sink.completions == issued);  // the peer is silent: all of it has ended by now
  return 0;
}
