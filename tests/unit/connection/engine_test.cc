// The engine over a driver that has no network: the test is the peer. Also the shortest driver there is.
#include "transports/connection/engine.h"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transports/connection/engine_impl.h"
#include "transports/connection/fenced_messages.h"

namespace ccixfer::connection {
namespace {

using namespace std::chrono_literals;
using reliability::MessageOwner;

// The books of what is in flight, as a driver's machines keep them.
struct Messages {
  struct Sent {
    MessageOwner owner;
    std::string bytes;
    Instant deadline = never;
  };
  std::vector<Sent> queue;
  std::vector<Duration> unstamped;
  uint64_t issued_count = 0, ended_count = 0;
  bool leaving = false;
  [[nodiscard]] size_t in_queue() const { return queue.size(); }
  [[nodiscard]] static size_t window() { return 3; }
  [[nodiscard]] bool peer_leaving() const { return leaving; }
  [[nodiscard]] uint64_t issued() const { return issued_count; }
  [[nodiscard]] uint64_t ended() const { return ended_count; }
  [[nodiscard]] bool empty() const { return queue.empty(); }
  void push(MessageOwner owner, std::string bytes, Duration timeout) {
    queue.push_back({owner, std::move(bytes)});
    unstamped.push_back(timeout);
    ++issued_count;
  }
  void stamp(Instant now) {
    for (size_t i = 0; i < unstamped.size(); ++i) queue[queue.size() - unstamped.size() + i].deadline = after(now, unstamped[i]);
    unstamped.clear();
  }
  [[nodiscard]] Instant deadline() const {
    Instant first = never;
    for (const Sent& sent : queue) first = std::min(first, sent.deadline);
    return first;
  }
  template <typename Ended>
  void timer(Instant now, const Ended& ended) {
    std::erase_if(queue, [&](const Sent& sent) {
      if (sent.deadline <= now) ended(sent.owner, Status::timed_out);
      return sent.deadline <= now;
    });
  }
  template <typename Ended>
  void fail_all(Status status, const Ended& ended) {
    for (const Sent& sent : std::exchange(queue, {})) ended(sent.owner, status);
  }
};

struct Rma {
  struct Operation {
    uint64_t token = 0;
    bool fence = false;
    uint64_t messages_before = 0;
  };
  std::vector<Operation> queue;
  uint64_t issued_count = 0;
  [[nodiscard]] bool full() const { return queue.size() >= 2; }
  [[nodiscard]] uint64_t issued() const { return issued_count; }
  [[nodiscard]] bool fence_before(uint64_t) const {
    return std::any_of(queue.begin(), queue.end(), [](const Operation& operation) { return operation.fence; });
  }
  void push(const ports::RmaRequest& request, uint64_t token, uint64_t messages_before) {
    queue.push_back({token, request.fence, messages_before});
    ++issued_count;
  }
  template <typename Ended>
  void announced(uint32_t slot, Status status, const Ended& ended) {
    ended(queue.at(slot).token, status);
  }
  template <typename Ended>
  void fail_all(Status status, const Ended& ended) {
    for (const Operation& operation : std::exchange(queue, {})) ended(operation.token, status);
  }
  [[nodiscard]] bool empty() const { return queue.empty(); }
};

struct Line final : Connection {
  using Message = std::string;
  Messages messages;
  Rma rma;
  FencedMessages<std::string> fenced;
  uint64_t name = 0;
};

class Wire;
using TestEngine = Engine<Wire, Line>;

// What the engine asked of its driver, in words; the test says what comes.
class Wire {
 public:
  explicit Wire(const ports::TransportOptions& options) : engine(options, 4096, *this, counters) {}

  Result<uint64_t> dial(std::string_view uri) {
    if (uri == "nonsense") return fail(ErrorKind::usage, "malformed");
    return uint64_t{7};
  }
  void dialling(Line& c, uint64_t name) { c.name = name; }
  static std::string copy_message(std::span<const Bytes> parts) {
    std::string copy;
    for (const Bytes part : parts) copy.append(reinterpret_cast<const char*>(part.data()), part.size());
    return copy;
  }
  void message_pushed(Line& c) { engine.touch_from_above(c); }
  void say_accept(Line&) { said.emplace_back("accept"); }
  bool say_end(Line&, const Parting& parting) {
    said.push_back((parting.kind == Parting::Kind::reject ? "reject: " : "bye: ") + std::string(parting.reason));
    return has_peer;
  }
  void poll(Instant) {
    if (comes) std::exchange(comes, nullptr)();
  }
  void serve(Line& c) {
    ++served;
    engine.release_fenced(c);
    c.messages.stamp(engine.now());
  }
  void stop_receiving(Line&) { said.emplace_back("stop receiving"); }
  void operations_end(Line&) { said.emplace_back("operations end"); }
  Instant deadline(const Line&) const { return own; }
  void on_timer(Line&) {
    said.emplace_back("timer");
    own = never;
  }
  void probe(Line&) { said.emplace_back("probe"); }
  Outflow outflow(const Line&) const { return flows; }
  void released(Line&) { said.emplace_back("released"); }
  void pause_accepting(bool pause) { paused = pause; }
  void end_turn() {}
  static Instant own_deadline() { return never; }
  bool can_serve() const { return serves; }
  void set_deadline(Instant at) { armed = at; }
  static std::string_view scheme() { return "wire"; }
  static const std::string& node(const Line& c) { return c.uri; }
  static Duration round_trip(const Line& c) { return c.round_trip; }
  static ports::PeerIdentity peer(const Line& c) { return {"", ports::host_in(c.uri)}; }
  static std::string_view protection(const Line&) { return {}; }

  Counters counters;
  TestEngine engine;
  std::vector<std::string> said;
  std::function<void()> comes;
  bool has_peer = true, paused = false, serves = true;
  Outflow flows;
  Instant own = never, armed = never;
  size_t served = 0;
};

struct Sink final : ports::TransportSink {
  std::vector<std::string> told;
  void on_connect_request(ports::ConnectionId, ports::Role, ports::Attribute, Bytes data) override {
    told.push_back("request of " + std::to_string(data.size()));
  }
  void on_connected(ports::ConnectionId, Status status, ports::ConnectionLimits limits, std::string_view reason) override {
    told.push_back(std::string("connected ") + std::string(to_string(status)) + " " + std::to_string(limits.max_send_bytes) + " " +
                   std::string(reason));
  }
  void on_accepted(ports::ConnectionId, Status status, ports::ConnectionLimits) override {
    told.push_back(std::string("accepted ") + std::string(to_string(status)));
  }
  MutableBytes on_message_begin(ports::ConnectionId, uint32_t) override { return {}; }
  void on_message_end(ports::ConnectionId, bool) override {}
  void on_completion(ports::ConnectionId, uint64_t token, ports::OperationResult ending) override {
    told.push_back(std::to_string(token) + " " + std::string(to_string(ending.status)));
  }
  void on_disconnected(ports::ConnectionId, Status status, std::string_view reason) override {
    told.push_back(std::string("disconnected ") + std::string(to_string(status)) + ": " + std::string(reason));
  }
  void on_keepalive_timeout(ports::ConnectionId) override { told.emplace_back("keepalive"); }
};

// Nobody reads or writes memory here.
struct NoTarget final : ports::RmaTarget {
  ports::Admission begin_write(uint64_t, const ports::RemoteRef&, uint64_t) override { return {}; }
  MutableBytes write_span(ports::Ticket, uint64_t) override { return {}; }
  ports::OperationResult end_write(ports::Ticket, bool) override { return {}; }
  ports::Admission begin_read(uint64_t, const ports::RemoteRef&, uint64_t) override { return {}; }
  Bytes read_span(ports::Ticket, uint64_t) override { return {}; }
  void end_read(ports::Ticket) override {}
};

ports::TransportOptions few() {
  ports::TransportOptions options;
  options.connections_max = 3;
  options.pending_requests_max = 2;
  return options;
}

constexpr wire::Offer their_offer{2048, 8, 4};
using Words = std::vector<std::string>;

struct End {
  explicit End(const ports::TransportOptions& options = few()) : wire(options) { engine.bind(sink, target); }
  Wire wire;
  TestEngine& engine = wire.engine;
  Sink sink;
  NoTarget target;
  Instant now{10s};

  Words turn(Duration later = 1ms) {
    now += later;
    engine.turn(now);
    return std::exchange(sink.told, {});
  }
  Words when(std::function<void()> comes) {
    wire.comes = std::move(comes);
    return turn();
  }
  Words said() { return std::exchange(wire.said, {}); }
  Line& at(ports::ConnectionId id) { return *engine.at(id.index); }

  ports::ConnectionId dial(Duration timeout = forever) {
    ports::DialRequest request;
    request.uri = "wire://peer";
    request.timeout = timeout;
    return engine.dial(request).value();
  }
  ports::ConnectionId dialled_open() {
    const auto id = dial();
    static_cast<void>(when([&] {
      engine.hello_is_out(at(id));
      static_cast<void>(engine.agree(at(id), their_offer));
      engine.answered(at(id));
      engine.accepted_by_peer(at(id));
    }));
    return id;
  }
  ports::ConnectionId requested() {
    ports::ConnectionId id;
    static_cast<void>(when([&] {
      Line& c = *engine.admit(State::awaiting_hello);
      id = c.id;
      static_cast<void>(engine.agree(c, their_offer));
      engine.requested(c, {});
    }));
    return id;
  }
  Status send(ports::ConnectionId id, const std::string& text, uint64_t token) {
    const Bytes part = as_bytes(text);
    return engine.send(id, {&part, 1}, token);
  }
  Status read(ports::ConnectionId id, uint64_t token, bool fence = false) {
    ports::RmaRequest request;
    request.write = false;
    request.destination = MutableBytes(memory);
    request.fence = fence;
    return engine.rma(id, request, token);
  }
  std::vector<std::byte> memory = std::vector<std::byte>(16);
};

TEST_CASE("engine__a_dial__goes_step_by_step_with_the_smaller_offer") {
  End end;
  const auto id = end.dial();
  CHECK(end.wire.armed == Instant{});  // a turn is wanted at once: no turn has been, so `now` is the beginning
  CHECK(end.at(id).name == 7);
  CHECK(end.turn().empty());
  CHECK(end.when([&] { end.engine.hello_is_out(end.at(id)); }).empty());
  CHECK(end.when([&] {
             const Agreed agreed = end.engine.agree(end.at(id), their_offer);
             CHECK(agreed.sends_in_flight_max == 8);
             CHECK(agreed.rmas_in_flight_max == 4);
             end.engine.answered(end.at(id));
           })
            .empty());
  CHECK(end.when([&] { end.engine.accepted_by_peer(end.at(id)); }) == Words{"connected success 2048 "});
  CHECK(end.engine.find_open(id) != nullptr);
  CHECK(end.engine.hops(id).at(0).node == "wire://peer");
}

TEST_CASE("engine__a_dial_that_cannot_be__is_refused_at_once") {
  End end;
  ports::DialRequest request;
  request.uri = "nonsense";
  CHECK(end.engine.dial(request).error().kind == ErrorKind::usage);
  request.uri = "wire://peer";
  request.attribute = ports::Attribute::multicast_send;
  CHECK(end.engine.dial(request).error().kind == ErrorKind::usage);
  request.attribute = ports::Attribute::reliable_ordered;
  const std::vector<std::byte> long_data(ports::connect_data_bytes_max + 1);
  request.data = long_data;
  CHECK(end.engine.dial(request).error().kind == ErrorKind::usage);
  request.data = {};
  for (int i = 0; i < 3; ++i) CHECK(end.engine.dial(request));
  CHECK(end.engine.dial(request).error().kind == ErrorKind::network);
}

TEST_CASE("engine__a_dial_without_an_answer__ends_when_its_time_is_over") {
  End end;
  const auto id = end.dial(5s);
  CHECK(end.turn(1h).empty());  // the time runs from the first turn on
  CHECK(end.engine.next_deadline() == end.now + 5s);
  CHECK(end.turn(4999ms).empty());
  end.wire.has_peer = false;
  CHECK(end.turn(1ms) == Words{"connected timed_out 0 no answer in time"});
  CHECK(end.engine.find(id) == nullptr);
  CHECK(end.engine.at(id.index) == nullptr);
  CHECK(end.engine.next_deadline() == never);
}

TEST_CASE("engine__a_dial_that_is_cancelled__ends_in_the_next_turn") {
  End end;
  end.wire.has_peer = false;
  const auto id = end.dial();
  end.engine.disconnect(id);
  CHECK(end.turn() == Words{"connected cancelled 0 cancelled"});
  CHECK(end.said() == Words{"bye: cancelled", "released"});
}

TEST_CASE("engine__a_request__is_accepted_or_rejected_once") {
  End end;
  const auto id = end.requested();
  CHECK(end.engine.accept({id.index, id.generation + 1}) == Status::not_found);
  CHECK(end.engine.accept(id) == Status::success);
  CHECK(end.engine.accept(id) == Status::invalid);
  CHECK(end.engine.reject(id, "no") == Status::invalid);
  CHECK(end.when([&] { end.engine.opened_by_dialler(end.at(id)); }) == Words{"accepted success"});
  const auto other = end.requested();
  CHECK(end.engine.reject(other, "no") == Status::success);
  CHECK(end.engine.accept(other) == Status::not_found);
  CHECK(end.said() == Words{"accept", "reject: no"});
  CHECK(end.turn().empty());
  CHECK(end.turn(goodbye_wait_max).empty());
  CHECK(end.engine.at(other.index) == nullptr);
}

TEST_CASE("engine__an_acceptance_nobody_acknowledges__ends_after_the_handshake_time") {
  End end;
  const auto id = end.requested();
  CHECK(end.engine.accept(id) == Status::success);
  CHECK(end.send(id, "early", 1) == Status::success);
  CHECK(end.turn().empty());
  CHECK(end.turn(10s) == Words{"1 timed_out", "accepted timed_out"});
}

TEST_CASE("engine__undecided_up_to_the_bound__accepting_pauses") {
  End end;
  const auto one = end.requested();
  CHECK_FALSE(end.wire.paused);
  const auto two = end.requested();
  CHECK(end.wire.paused);
  CHECK(end.engine.is_crowded());
  CHECK(end.engine.accept(one) == Status::success);
  CHECK_FALSE(end.wire.paused);
  static_cast<void>(end.dial());  // the third of three
  CHECK(end.wire.paused);
  CHECK(end.engine.admit(State::awaiting_hello) == nullptr);
  CHECK(end.when([&] { end.engine.lose(end.at(two), Status::disconnected, "gone"); }) == Words{"disconnected disconnected: gone"});
  CHECK_FALSE(end.wire.paused);
}

TEST_CASE("engine__operations__are_refused_with_their_reason") {
  End end;
  CHECK(end.send({0, 1}, "x", 1) == Status::not_found);
  const auto dialling = end.dial();
  CHECK(end.send(dialling, "x", 1) == Status::not_found);
  const auto id = end.dialled_open();
  CHECK(end.send(id, std::string(2049, 'x'), 1) == Status::message_size);
  for (uint64_t token = 1; token <= 3; ++token) CHECK(end.send(id, "x", token) == Status::success);
  CHECK(end.send(id, "x", 4) == Status::no_buffers);
  CHECK(end.read(id, 5) == Status::success);
  CHECK(end.read(id, 6) == Status::success);
  CHECK(end.read(id, 7) == Status::no_buffers);
  end.memory.clear();
  CHECK(end.read(id, 8) == Status::invalid);
  end.engine.disconnect(id);
  CHECK(end.send(id, "x", 9) == Status::disconnected);
  CHECK(end.read(id, 9) == Status::disconnected);
}

TEST_CASE("engine__messages_behind_a_fence__wait_for_it_and_count") {
  End end;
  const auto id = end.dialled_open();
  CHECK(end.send(id, "before", 1) == Status::success);
  CHECK(end.read(id, 2, true) == Status::success);
  CHECK(end.at(id).rma.queue.at(0).messages_before == 1);
  CHECK(end.send(id, "behind", 3) == Status::success);
  CHECK(end.send(id, "behind", 4) == Status::success);
  CHECK(end.send(id, "behind", 5) == Status::no_buffers);
  CHECK(end.turn().empty());
  CHECK(end.at(id).messages.queue.size() == 1);
  CHECK(end.when([&] {
             end.at(id).rma.queue.clear();
             end.engine.touch(end.at(id));
           })
            .empty());
  CHECK(end.at(id).messages.queue.size() == 3);
}

TEST_CASE("engine__the_connection_is_lost__every_operation_ends_before_that_is_told") {
  End end;
  const auto id = end.dialled_open();
  CHECK(end.send(id, "a", 1) == Status::success);
  CHECK(end.read(id, 2, true) == Status::success);
  CHECK(end.send(id, "b", 3) == Status::success);
  const Status status = GENERATE(Status::timed_out, Status::error);
  const std::string ended = status == Status::timed_out ? " timed_out" : " disconnected";
  const Words told = end.when([&] { end.engine.lose(end.at(id), status, "why"); });
  CHECK(told == Words{"1" + ended, "2" + ended, "3" + ended, "disconnected " + std::string(to_string(status)) + ": why"});
  CHECK(end.said() == Words{"operations end", "released"});
  CHECK(end.engine.find(id) == nullptr);
}

TEST_CASE("engine__the_peer_breaks_the_protocol__is_counted_and_told") {
  End end;
  const auto id = end.dialled_open();
  CHECK(end.when([&] { end.engine.violation(end.at(id), "nonsense"); }) == Words{"disconnected error: nonsense"});
  CHECK(end.wire.counters.get(Counter::frames_rejected) == 1);
  CHECK(end.said() == Words{"operations end", "bye: nonsense"});
  CHECK(end.at(id).state == State::lingering);
  const auto greeting = end.dial();
  CHECK(end.when([&] {
    end.engine.hello_is_out(end.at(greeting));
    end.engine.violation(end.at(greeting), "HTTP");
  }) == Words{"connected version 0 what answers there is not a ccixfer: HTTP"});
}

TEST_CASE("engine__disconnect__delivers_and_gives_up_after_a_time") {
  End end;
  const auto id = end.dialled_open();
  CHECK(end.send(id, "a", 1) == Status::success);
  end.engine.disconnect(id);
  end.engine.disconnect(id);
  CHECK(end.turn().empty());
  CHECK(end.said() == Words{"stop receiving"});
  CHECK(end.at(id).state == State::closing);
  CHECK(end.turn(1ms).empty());  // the step's time runs from this turn on
  CHECK(end.turn(disconnect_flush_max) == Words{"1 disconnected"});
  CHECK(end.said() == Words{"operations end", "bye: the peer disconnected"});
  CHECK(end.turn().empty());
  CHECK(end.turn(goodbye_wait_max).empty());
  CHECK(end.engine.at(id.index) == nullptr);
}

TEST_CASE("engine__abort__ends_the_operations_in_the_next_turn") {
  End end;
  end.wire.has_peer = false;
  const auto id = end.dialled_open();
  CHECK(end.send(id, "a", 1) == Status::success);
  end.engine.abort(id);
  CHECK(end.turn() == Words{"1 disconnected"});
  CHECK(end.engine.at(id.index) == nullptr);
}

TEST_CASE("engine__keepalive__probes_and_then_the_connection_is_lost") {
  End end;
  const auto id = end.dialled_open();
  CHECK(end.turn().empty());
  for (uint32_t probe = 0; probe < keepalive_probes_max; ++probe) {
    CHECK(end.turn(5s).empty());
    CHECK(end.said() == Words{"probe"});
  }
  CHECK(end.turn(5s) == Words{"disconnected timed_out: the peer does not answer"});
  CHECK(end.engine.find(id) == nullptr);
}

TEST_CASE("engine__keepalive_while_what_was_sent_gets_on__the_silence_counts_anew") {
  End end;
  const auto id = end.dialled_open();
  CHECK(end.turn().empty());
  for (uint64_t i = 1; i <= 20; ++i) {
    end.wire.flows = {i * 1000, true};
    CHECK(end.turn(5s).empty());
  }
  CHECK(end.said() == Words(10, "probe"));  // what left before a silence began does not count: each second period
  for (uint32_t probe = 0; probe < keepalive_probes_max; ++probe) CHECK(end.turn(5s).empty());
  CHECK(end.said() == Words{"probe", "probe", "probe"});
  CHECK(end.turn(5s) == Words{"disconnected timed_out: the peer does not answer"});
  CHECK(end.engine.find(id) == nullptr);
}

TEST_CASE("engine__keepalive_while_all_that_is_sent_leaves__probes_and_the_connection_is_lost") {
  End end;
  static_cast<void>(end.dialled_open());
  CHECK(end.turn().empty());
  for (uint64_t i = 1; i <= keepalive_probes_max; ++i) {
    end.wire.flows = {i * 24, false};  // the probes do
    CHECK(end.turn(5s).empty());
  }
  end.wire.flows.more_waits = true;  // the last one does not
  CHECK(end.turn(5s) == Words{"disconnected timed_out: the peer does not answer"});
}

TEST_CASE("engine__keepalive_of_the_application__tells_and_the_connection_stays") {
  End end;
  const auto id = end.dialled_open();
  end.engine.set_keepalive(id, 1s);
  CHECK(end.turn().empty());
  for (uint32_t probe = 0; probe < keepalive_probes_max; ++probe) CHECK(end.turn(1s).empty());
  CHECK(end.turn(1s) == Words{"keepalive"});
  CHECK(end.turn(1h).empty());
  CHECK(end.engine.find_open(id) != nullptr);
}

TEST_CASE("engine__time_of_a_message_and_of_the_driver__are_looked_at") {
  End end;
  const auto id = end.dialled_open();
  end.engine.set_keepalive(id, forever);
  end.engine.set_send_timeout(id, 2s);
  CHECK(end.send(id, "a", 1) == Status::success);
  CHECK(end.turn().empty());
  end.wire.own = end.now + 1s;
  end.engine.touch(end.at(id));
  CHECK(end.turn().empty());
  CHECK(end.turn(1s).empty());
  CHECK(end.said() == Words{"timer"});
  CHECK(end.turn(1s) == Words{"1 timed_out"});
}

TEST_CASE("engine__idle_connections__are_not_served") {
  End end;
  static_cast<void>(end.dialled_open());
  CHECK(end.turn().empty());
  end.wire.served = 0;
  for (int i = 0; i < 10; ++i) CHECK(end.turn().empty());
  CHECK(end.wire.served == 0);
}

TEST_CASE("engine__when_to_turn_again__at_once_patiently_or_when_the_network_takes_more") {
  End end;
  const auto id = end.dialled_open();
  CHECK(end.turn().empty());
  CHECK(end.when([&] { end.engine.touch(end.at(id)); }).empty());
  CHECK(end.wire.armed > end.now + patience_max);  // served in the same turn
  end.engine.touch(end.at(id), true);
  CHECK(end.engine.next_deadline() == end.now);
  end.engine.take_back(end.at(id));
  CHECK(end.engine.next_deadline() > end.now);
  end.engine.touch(end.at(id));
  end.wire.serves = false;
  CHECK(end.engine.next_deadline() > end.now);
}

}  // namespace
}  // namespace ccixfer::connection
