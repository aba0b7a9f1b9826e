// A whole transport against a peer that was let in and then sends what it likes, over cards that do what they are told: packets,
// each a length (u8) and that many bytes, of which the checks of frames are made good. A record of its own room decodes to the same
// bytes. Checked: it neither crashes nor writes outside its region, a card is given no memory but registered one, and each
// operation ends once, whatever the peer says of it.
#include <deque>
#include <map>
#include <memory>

#include "core/cci/memory_table.h"
#include "core/wire/connection_frames.h"
#include "tests/fuzz/fuzz.h"
#include "transports/rdma/limits.h"
#include "transports/rdma/packets.h"
#include "transports/rdma/rdma_transport.h"

using namespace ccixfer;

namespace {

constexpr rdma::PairId peer_pair = 1;

// Its cards read 0x77 from the peer, and refuse every address that is odd.
class Net final : public rdma::RdmaNet {
 public:
  std::deque<std::vector<std::byte>> in;
  bool is_closed = false;
  [[nodiscard]] std::string_view scheme() const override { return "fuzz"; }
  [[nodiscard]] std::string uri() const override { return "fuzz://"; }
  [[nodiscard]] uint32_t send_bytes_max() const override { return rdma::send_bytes_floor; }
  [[nodiscard]] uint32_t receives_max() const override { return 512; }
  [[nodiscard]] uint32_t work_bytes_max() const override { return 1u << 20; }
  [[nodiscard]] uint32_t reads_max(rdma::PairId) const override { return 4; }
  [[nodiscard]] Result<rdma::PairId> dial(std::string_view) override { return fail(ErrorKind::usage, "no"); }
  void accept(rdma::PairId) override { accepted_ = true; }
  void close(rdma::PairId) override { is_closed = true; }
  [[nodiscard]] bool post_send(rdma::PairId, std::span<const Bytes> parts) override {
    size_t size = 0;
    for (const Bytes part : parts) size += part.size();
    fuzz::must(!is_closed && size > 0 && size <= rdma::send_bytes_floor);
    return true;
  }
  [[nodiscard]] bool post_read(rdma::PairId, const rdma::Work& work) override {
    if (work.remote_address % 2 == 0) std::fill(work.local.begin(), work.local.end(), std::byte{0x77});
    return post(work);
  }
  [[nodiscard]] bool post_write(rdma::PairId, const rdma::Work& work) override { return post(work); }
  [[nodiscard]] uint32_t unsent(rdma::PairId) const override { return 0; }
  [[nodiscard]] bool await(rdma::PairId, uint64_t, Duration) override { return true; }
  [[nodiscard]] bool flush(rdma::PairId, Duration) override { return true; }
  [[nodiscard]] Status register_memory(MutableBytes memory, rdma::Access, rdma::Registration& registration) override {
    registration = {++registered_, static_cast<uint32_t>(registered_), 7};
    memory_[registration.local_key] = memory;
    return Status::success;
  }
  void deregister(uint64_t id) override { memory_.erase(static_cast<uint32_t>(id)); }
  void poll(Instant, rdma::RdmaEvents& events) override {
    if (registered_ > 0 && !told_) events.requested(peer_pair, "fuzz://peer:1");
    if (accepted_ && !told_) events.connected(peer_pair);
    told_ = told_ || accepted_;
    for (const auto& [tag, good] : std::exchange(works_, {})) {
      if (is_closed) return;
      events.completed(peer_pair, tag, good ? rdma::WorkStatus::success : rdma::WorkStatus::remote_access);
    }
    for (const auto& bytes : std::exchange(in, {})) {
      if (!is_closed) events.received(peer_pair, bytes);
    }
  }
  void set_deadline(Instant) override {}
  [[nodiscard]] int os_handle() const override { return -1; }

 private:
  bool post(const rdma::Work& work) {
    const MutableBytes whole = memory_.at(work.local_key);
    fuzz::must(!is_closed && !work.local.empty() && work.local.data() >= whole.data() &&
               work.local.data() + work.local.size() <= whole.data() + whole.size());
    works_.emplace_back(work.tag, work.remote_address % 2 == 0);
    return true;
  }
  std::map<uint32_t, MutableBytes> memory_;
  std::vector<std::pair<uint64_t, bool>> works_;
  uint64_t registered_ = 0;
  bool accepted_ = false;
  bool told_ = false;
};

class Sink final : public ports::TransportSink {
 public:
  ports::ConnectionId request;
  std::map<uint64_t, size_t> completions;
  std::vector<std::byte> memory = std::vector<std::byte>(8192);
  void on_connect_request(ports::ConnectionId id, ports::Role, ports::Attribute, Bytes) override { request = id; }
  void on_connected(ports::ConnectionId, Status, ports::ConnectionLimits, std::string_view) override { fuzz::must(false); }
  void on_accepted(ports::ConnectionId, Status, ports::ConnectionLimits) override {}
  MutableBytes on_message_begin(ports::ConnectionId, uint32_t length) override {
    return length % 5 == 4 ? MutableBytes{} : MutableBytes(memory).first(length);
  }
  void on_message_end(ports::ConnectionId, bool) override {}
  void on_completion(ports::ConnectionId, uint64_t token, ports::OperationResult) override { ++completions[token]; }
  void on_disconnected(ports::ConnectionId, Status, std::string_view) override {}
  void on_keepalive_timeout(ports::ConnectionId) override {}
};

// The checks of its frames, and what its own records decode to.
void make_good(std::vector<std::byte>& packet) {
  for (size_t at = rdma::packet_header_bytes; at < packet.size();) {
    const Bytes rest = Bytes(packet).subspan(at);
    if (const auto kind = rdma::record_kind(rest)) {
      const size_t size = rdma::record_bytes(*kind);
      if (rest.size() < size) return;
      std::vector<std::byte> again;
      wire::Writer out(again);
      if (*kind == rdma::RecordKind::progress) {
        const auto progress = rdma::decode_progress(rest.first(size));
        if (!progress) return;
        rdma::encode(out, *progress);
      } else {
        const auto announced = rdma::decode_announced(rest.first(size));
        if (!announced) return;
        rdma::encode(out, *announced, *kind == rdma::RecordKind::announced_write);
      }
      fuzz::must(again.size() == size && std::equal(again.begin(), again.end(), rest.begin()));
      at += size;
      continue;
    }
    const auto prefix = wire::decode_prefix(rest);
    if (!prefix || rest.size() < size_t{prefix->header_bytes} + prefix->payload_bytes) return;
    std::vector<std::byte> header(rest.begin(), rest.begin() + prefix->header_bytes);
    fuzz::make_check_good(header, header.size() - wire::check_bytes, wire::check_bytes);
    std::copy(header.begin(), header.end(), packet.begin() + static_cast<std::ptrdiff_t>(at));
    at += size_t{prefix->header_bytes} + prefix->payload_bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Entropy entropy;
  Counters counters;
  cci::MemoryTable memory(entropy, counters);
  Sink sink;
  auto owned = std::make_unique<Net>();
  Net& net = *owned;
  ports::TransportOptions options;
  options.sends_in_flight_max = options.rmas_in_flight_max = 8;
  auto transport = std::make_unique<rdma::RdmaTransport>(options, std::move(owned), counters);
  ports::RmaTarget& target = memory.target_of_another_transport();
  transport->bind(sink, target);
  memory.attach(target, *transport);
  Instant now{std::chrono::seconds(100)};
  const auto turn = [&] {
    now += std::chrono::milliseconds(1);
    transport->turn(now);
  };
  const auto packet_of = [](uint16_t credits, const auto& encode_records) {
    std::vector<std::byte> bytes;
    wire::Writer out(bytes);
    rdma::encode(out, rdma::PacketHeader{credits});
    encode_records(out);
    return bytes;
  };

  std::vector<std::byte> all(20'000, std::byte{0x55});
  const auto handle = memory.register_region(MutableBytes(all).subspan(1000, 9000), cci::access_read | cci::access_write);
  fuzz::must(handle.number == 0 && handle.generation == 1 && handle.key == 0x3c6ef372fe94f82b);  // the corpus names it
  const auto own = memory.register_region(MutableBytes(all).subspan(11'000, 8000), 0);
  turn();
  net.in.push_back(packet_of(60, [](wire::Writer& out) {
    wire::Hello hello;
    hello.offer = {1500, 8, 8};
    wire::encode(out, hello);
  }));
  turn();
  fuzz::must(transport->accept(sink.request) == Status::success);
  net.in.push_back(packet_of(0, [](wire::Writer& out) { wire::encode_empty(out, wire::Kind::connect_ack); }));
  turn();
  turn();

  uint64_t issued = 0;
  const Bytes nothing;
  if (transport->send(sink.request, {&nothing, 1}, issued) == Status::success) ++issued;
  for (const bool write : {true, false}) {
    for (const size_t length : {size_t{100}, size_t{8000}}) {
      ports::RmaRequest request;
      request.write = write;
      request.remote.handle = own;
      fuzz::must(memory.local_key(target, own, request.local.key) == Status::success);
      const MutableBytes local = MutableBytes(all).subspan(11'000, length);
      request.source = write ? Bytes(local) : Bytes{};
      request.destination = write ? MutableBytes{} : local;
      if (transport->rma(sink.request, request, issued) == Status::success) ++issued;
    }
  }
  turn();

  for (size_t at = 0; at < size;) {
    const size_t length = std::min<size_t>(data[at], size - at - 1);
    const Bytes packet = fuzz::bytes_of(data + at + 1, length);
    net.in.emplace_back(packet.begin(), packet.end());
    if (length >= rdma::packet_header_bytes) make_good(net.in.back());
    at += 1 + length;
    turn();
    turn();
  }
  for (size_t i = 0; i < 1000; ++i) fuzz::must(all[i] == std::byte{0x55});
  for (size_t i = 10'000; i < 11'000; ++i) fuzz::must(all[i] == std::byte{0x55});
  for (size_t i = 19'000; i < all.size(); ++i) fuzz::must(all[i] == std::byte{0x55});
  for (int i = 0; i < 10; ++i) {
    now += std::chrono::seconds(10);
    transport->turn(now);
  }
  fuzz::must(sink.completions.size() == issued);  // the peer is silent: all of it has ended by now
  for (const auto& [token, count] : sink.completions) fuzz::must(count == 1);
  memory.detach(target);
  transport.reset();
  return 0;
}
