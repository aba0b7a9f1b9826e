// A whole stream transport against a peer that writes what it likes, from the first byte on. The first byte of the input: bit 0: we
// dial, it answers; bits 1 and 2: the attribute; bit 3: it begins with an honest handshake; bit 4: both ends prove who they are
// first, honestly with bit 5, and what is mended is then sealed. Then steps: a byte for what happens (its low three bits), then
// what that takes. Checked: it neither crashes nor writes outside its region, and everything that was begun ends.
#include <cstring>
#include <memory>

#include "core/cci/memory_table.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/stream/memory_net.h"
#include "tests/unit/stream/own_trust.h"
#include "transports/stream/secured.h"
#include "transports/stream/stream_transport.h"

using namespace ccixfer;
using stream::testing::Hub;
using stream::testing::MemoryNet;

namespace {

constexpr size_t pipe_bytes = 16u << 10;
constexpr size_t steps_max = 400;

class Sink final : public ports::TransportSink {
 public:
  ports::ConnectionId request, connection;
  size_t issued = 0, completions = 0, messages = 0, connected = 0, ended = 0;
  bool open_message = false;
  std::vector<std::byte> memory = std::vector<std::byte>(wire::message_bytes_max);
  void on_connect_request(ports::ConnectionId id, ports::Role, ports::Attribute, Bytes) override { request = id; }
  void on_connected(ports::ConnectionId id, Status status, ports::ConnectionLimits, std::string_view) override {
    fuzz::must(connected++ == 0);
    if (status == Status::success) connection = id;
  }
  void on_accepted(ports::ConnectionId id, Status status, ports::ConnectionLimits) override {
    if (status == Status::success) connection = id;
  }
  MutableBytes on_message_begin(ports::ConnectionId, uint32_t length) override {
    fuzz::must(!open_message && length <= memory.size());
    if (messages++ % 5 == 4) return {};
    open_message = true;
    return MutableBytes(memory).first(length);
  }
  void on_message_end(ports::ConnectionId, bool) override { fuzz::must(std::exchange(open_message, false)); }
  void on_completion(ports::ConnectionId, uint64_t, ports::OperationResult) override { fuzz::must(++completions <= issued); }
  void on_disconnected(ports::ConnectionId, Status, std::string_view) override {
    fuzz::must(!open_message && completions == issued);
    ++ended;
  }
  void on_keepalive_timeout(ports::ConnectionId) override {}
};

class World {
 public:
  explicit World(uint8_t how)
      : dials(how & 1),
        secured((how & 16) != 0),
        attribute(static_cast<ports::Attribute>((how >> 1 & 3) % 3)),
        peer_(hub_, "peer") {
    hub_.capacity = pipe_bytes;
    options_.sends_in_flight_max = options_.rmas_in_flight_max = 8;
    transport_ = std::make_unique<stream::StreamTransport>(options_, std::make_unique<MemoryNet>(hub_, "us"), counters_,
                                                           secured ? std::make_shared<testing::OwnTrust>(identity()) : nullptr);
    transport_->bind(sink, memory_);
    region_ = std::vector<std::byte>(5000, std::byte{0x55});
    handle_ = memory_.register_region(MutableBytes(region_).subspan(1000, 3000), cci::access_read | cci::access_write);
    if (dials) {
      ports::DialRequest request;
      request.uri = "mem://peer";
      request.attribute = attribute;
      request.timeout = std::chrono::seconds(30);  // else a peer that says nothing is waited for
      fuzz::must(transport_->dial(request).has_value());
    } else {
      stream_ = *peer_.dial("mem://us");
    }
    turn();
  }

  void turn() {
    transport_->turn(now_);
    peer_.poll(now_, [&](const stream::StreamEvent& event) {
      if (event.type == stream::StreamEventType::accepted) stream_ = event.id;
    });
  }
  void pass(Duration duration) {
    now_ += duration;
    turn();
  }
  std::vector<std::byte> read() {
    std::vector<std::byte> all;
    std::byte chunk[4096];
    for (int i = 0; i < 8; ++i) {
      const stream::IoSpan span{chunk, sizeof chunk};
      const int64_t n = stream_ == 0 ? 0 : peer_.recv(stream_, {&span, 1});
      if (n <= 0) break;
      all.insert(all.end(), chunk, chunk + n);
    }
    return all;
  }
  // What our TLS says goes to the peer's, and back, until both have keys.
  void prove() {
    using trust::HandshakeSide;
    testing::OwnTrust peer(identity());
    auto keys = std::make_unique<stream::Secured>(peer.handshake(dials ? HandshakeSide::acceptor : HandshakeSide::dialler));
    if (!dials) fuzz::must(keys->step({}).has_value());
    for (int i = 0; i < 3; ++i) {
      write(std::exchange(keys->output(), {}));
      const std::vector<std::byte> said = read();
      Bytes left(said);
      while (const auto prefix = wire::decode_prefix(left)) {
        if (prefix->kind != wire::Kind::handshake) break;
        const auto frame = wire::decode_handshake(left.first(prefix->header_bytes));
        fuzz::must(frame && keys->step(frame->records).has_value());
        left = left.subspan(prefix->header_bytes);
      }
    }
    fuzz::must(keys->has_keys());
    write(std::exchange(keys->output(), {}));
    keys_ = std::move(keys);
  }
  // A frame as an honest peer would send it: after its proof in a record, with the payload of a chunk behind it.
  void say(Bytes bytes) {
    const auto prefix = wire::decode_prefix(bytes);
    const bool bulk = prefix && (prefix->kind == wire::Kind::rma_write || prefix->kind == wire::Kind::rma_read_data);
    const size_t text_bytes = bulk ? std::min<size_t>(prefix->header_bytes, bytes.size()) : bytes.size();
    if (keys_ == nullptr || text_bytes < wire::sealed_text_bytes_min || text_bytes > wire::sealed_text_bytes_max)
      return write(bytes);
    std::vector<std::byte> record(text_bytes + wire::sealed_overhead_bytes);
    std::memcpy(record.data() + wire::sealed_prefix_bytes, bytes.data(), text_bytes);
    keys_->seal(record);
    const Bytes payload = bytes.subspan(text_bytes);
    record.insert(record.end(), payload.begin(), payload.end());
    write(record);
  }
  void write(Bytes bytes) {
    const stream::ConstIoSpan span{bytes.data(), bytes.size()};
    if (stream_ != 0 && !bytes.empty()) static_cast<void>(peer_.send(stream_, {&span, 1}));
    turn();
  }
  template <typename Encode>
  void frame(Encode&& encode) {
    std::vector<std::byte> bytes;
    wire::Writer out(bytes);
    encode(out);
    say(bytes);
  }
  // With its checks good and, where it names region 0, our handle: a fuzzer cannot guess a key.
  void write_mended(std::vector<std::byte> bytes) {
    const auto prefix = wire::decode_prefix(bytes);
    if (!prefix || prefix->header_bytes > bytes.size()) return say(bytes);
    const Bytes header = Bytes(bytes).first(prefix->header_bytes);
    const Bytes payload = Bytes(bytes).subspan(prefix->header_bytes);
    std::vector<std::byte> again;
    wire::Writer out(again);
    const auto name_region = [&](ports::RemoteRef& remote) {
      if (remote.handle.number == 0) remote.handle = handle_;
    };
    if (prefix->kind == wire::Kind::message) {
      if (auto message = wire::decode_message(header)) {
        message->payload_check = wire::payload_check_of(payload);
        wire::encode(out, *message, static_cast<uint32_t>(payload.size()));
      }
    } else if (prefix->kind == wire::Kind::rma_write) {
      if (auto one = wire::decode_rma_write(header, *prefix)) {
        name_region(one->remote);
        wire::encode(out, *one, prefix->payload_bytes);
      }
    } else if (prefix->kind == wire::Kind::rma_read) {
      if (auto one = wire::decode_rma_read(header)) {
        name_region(one->remote);
        wire::encode(out, *one);
      }
    }
    if (!again.empty()) {
      again.insert(again.end(), payload.begin(), payload.end());
      return say(again);
    }
    fuzz::make_check_good(bytes, prefix->header_bytes - wire::check_bytes, wire::check_bytes);
    say(bytes);
  }
  void honest_handshake() {
    if (dials) {
      wire::HelloReply reply;
      reply.offer = {1500, 8, 8};
      frame([&](wire::Writer& out) { wire::encode(out, reply); });
      frame([](wire::Writer& out) { wire::encode_empty(out, wire::Kind::connect_accept); });
    } else {
      wire::Hello hello;
      hello.attribute = attribute;
      hello.offer = {1500, 8, 8};
      frame([&](wire::Writer& out) { wire::encode(out, hello); });
      decide(0);
      frame([](wire::Writer& out) { wire::encode_empty(out, wire::Kind::connect_ack); });
    }
    fuzz::must(static_cast<bool>(sink.connection));
  }
  void decide(uint8_t how) {
    if (!sink.request) return;
    const ports::ConnectionId id = std::exchange(sink.request, {});
    static_cast<void>(how == 1 ? transport_->reject(id, "no") : transport_->accept(id));
    turn();
  }
  // What our application does.
  void act(uint8_t what) {
    const ports::ConnectionId id = sink.connection;
    const bool large = (what & 0x80) != 0;
    ports::RmaRequest request;
    request.remote.handle.kind = ports::HandleKind::region;
    request.fence = (what & 0x40) != 0;
    switch (what & 7) {
      case 0: {
        const Bytes part = Bytes(own_).first(large ? 1400 : 10);
        sink.issued += transport_->send(id, {&part, 1}, 1) == Status::success ? 1u : 0u;
        break;
      }
      case 1:
      case 2:
        request.write = (what & 7) == 1;
        if (request.write) request.source = Bytes(own_).first(large ? own_.size() : 1);
        if (!request.write) request.destination = MutableBytes(own_).first(large ? own_.size() : 1);
        sink.issued += transport_->rma(id, request, 2) == Status::success ? 1u : 0u;
        break;
      case 3:
        transport_->set_send_timeout(id, std::chrono::milliseconds(50));
        break;
      case 4:
        transport_->set_keepalive(id, std::chrono::seconds(1));
        break;
      case 5:
        transport_->disconnect(id);
        break;
      default:
        decide(what >> 3 & 1);
    }
    turn();
  }
  void peer_closes() {
    if (stream_ != 0) peer_.close(std::exchange(stream_, 0));
    turn();
  }
  void check_region() const {
    for (size_t i = 0; i < 1000; ++i) fuzz::must(region_[i] == std::byte{0x55});
    for (size_t i = 4000; i < region_.size(); ++i) fuzz::must(region_[i] == std::byte{0x55});
  }
  // The peer is silent from now on, and nobody waits for ever.
  void finish() {
    transport_->disconnect(sink.connection);
    for (int i = 0; i < 60; ++i) pass(std::chrono::seconds(1));
    fuzz::must(sink.completions == sink.issued && !sink.open_message);
    fuzz::must(sink.ended <= 1 && (!dials || sink.connected == 1));
    fuzz::must(transport_->next_deadline() == never);  // nothing is left
    check_region();
  }

  const bool dials;
  const bool secured;
  const ports::Attribute attribute;
  Sink sink;

 private:
  // One for all: making one costs more than a run.
  static const trust::Identity& identity() {
    static const trust::Identity one = trust::Identity::generate().value();
    return one;
  }

  Hub hub_;
  MemoryNet peer_;
  std::unique_ptr<stream::Secured> keys_;  // the peer's
  stream::StreamId stream_ = 0;
  fuzz::Entropy entropy_;
  Counters counters_;
  cci::MemoryTable memory_{entropy_, counters_};
  ports::TransportOptions options_;
  std::vector<std::byte> region_;
  std::vector<std::byte> own_ = std::vector<std::byte>(300'000, std::byte{7});
  ports::Handle handle_;
  std::unique_ptr<stream::StreamTransport> transport_;  // its RMA reads and writes what stands above
  Instant now_{std::chrono::seconds(100)};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  World world(data[0]);
  if ((data[0] & 16) != 0 && (data[0] & (8 | 32)) != 0) world.prove();
  if ((data[0] & 8) != 0) world.honest_handshake();
  size_t steps = 0;
  for (size_t at = 1; at < size && steps < steps_max; ++steps) {
    const uint8_t step = data[at++];
    const uint8_t operand = at < size ? data[at] : uint8_t{0};
    switch (step & 7) {
      case 0:
      case 1:
      case 2:
      case 3: {  // a length of a byte, and so many bytes; 3: as they are
        const size_t length = std::min<size_t>(operand, size - std::min(at + 1, size));
        const Bytes bytes = fuzz::bytes_of(data + std::min(at + 1, size), length);
        at += 1 + length;
        std::vector<std::byte> copy(bytes.begin(), bytes.end());
        if ((step & 7) == 3) {
          world.write(copy);
        } else {
          world.write_mended(std::move(copy));
        }
        break;
      }
      case 4:
        ++at;
        world.act(operand);
        break;
      case 5:
        world.pass(std::chrono::milliseconds(1) * (1 << (step >> 3 & 15)));
        break;
      case 6:
        world.read();
        world.turn();
        break;
      default:
        if (step >> 3 == 31) world.peer_closes();
        world.turn();
    }
  }
  world.check_region();
  world.finish();
  return 0;
}
