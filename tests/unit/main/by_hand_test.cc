// Commands beside a peer that is driven by hand: one that lies, refuses, or goes.
#include "app/bench/messages.h"
#include "app/devices/node.h"
#include "core/host/entropy.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

// Its endpoint, and what it does at each event: false ends it.
class ByHand final : public LoopHandler {
 public:
  using OnEvent = std::function<bool(cci::Endpoint&, cci::Event&)>;
  ByHand(cci::Endpoint& endpoint, OnEvent on_event) : endpoint_(endpoint), on_event_(std::move(on_event)) {}
  bool turn(Instant now) override {
    endpoint_.turn(now);
    while (auto event = endpoint_.get_event()) over_ = over_ || !on_event_(endpoint_, *event);
    return !over_;
  }
  Instant next_deadline() const override { return endpoint_.next_deadline(); }
  void on_signal(int, Instant) override { over_ = true; }

 private:
  cci::Endpoint& endpoint_;
  OnEvent on_event_;
  bool over_ = false;
};

// It listens and says where, or dials `uri` with `hello`.
Running::Body by_hand(ByHand::OnEvent on_event, const std::string& uri = "", std::vector<std::byte> hello = {}) {
  return [on_event = std::move(on_event), uri, hello = std::move(hello)](const Process& process) -> CommandEnd {
    host::SystemEntropy entropy;
    NodeOptions options;
    options.listening = uri.empty();
    options.listen = "127.0.0.1:0";
    options.waker = process.loop.waker();
    auto node = make_node(chosen_device({}, std::nullopt).value(), options, entropy, process.counters);
    if (!node) return {node.error(), {}};
    if (uri.empty()) {
      process.reporter.ready(node->uris);
    } else {
      cci::ConnectOptions dial;
      dial.data = hello;
      dial.timeout = std::chrono::seconds(20);
      if (const auto dialled = node->endpoint->connect(uri, dial); !dialled) return {dialled.error(), {}};
    }
    ByHand user(*node->endpoint, on_event);
    process.loop.run(user);
    return {};
  };
}

CommandEnd pinged(const std::string& uri) {
  PingCommand command;
  command.common = insecure();
  command.uri = uri;
  command.count = 3;
  return Ran([command](const Process& process) { return run_ping(process, command); }).end;
}

}  // namespace

TEST_CASE("by_hand__a_measurements_server_drops_a_peer_that_lies__says_it_once_and_why") {
  BenchCommand command;
  command.common = insecure();
  command.listen = listening();
  command.serve = true;
  Running serving([command](const Process& process) { return run_bench(process, command); });
  const std::string uri = serving.uri();
  bool dropped = false;
  const auto lies = [&](cci::Endpoint& endpoint, cci::Event& event) {
    if (event.type == cci::EventType::connect) {
      return endpoint.send(event.connection, bench::encode_padded(bench::Kind::echo, 8), 0, true) == Status::success;
    }
    dropped = event.type == cci::EventType::disconnected;
    return !dropped;
  };
  CHECK(of(Ran(by_hand(lies, uri, bench::encode_hello(bench::Purpose::session))).end) == "ok: ");
  CHECK(dropped);
  CHECK(of(serving.stop()) == "ok: ");
  const Words told = serving.said.text.lines("a peer was disconnected");
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("a peer was disconnected: a message before `open`") != std::string::npos);
}

TEST_CASE("by_hand__pinged__refuses_in_its_words_or_goes__each_is_said") {
  std::string words;
  {
    Running refusing(by_hand([&](cci::Endpoint& endpoint, cci::Event& event) {
      if (event.type == cci::EventType::connect_request) static_cast<void>(endpoint.reject(event, words));
      return true;
    }));
    const std::string uri = refusing.uri();
    const std::string check = ": " + uri + ": check that the peer runs and can be reached";
    CHECK(of(pinged(uri)) == "no_answer: refused" + check);
    words = "not now";
    CHECK(of(pinged(uri)) == "no_answer: refused: not now" + check);
    words = "\x1b[2J";  // would clear the terminal
    const std::string said = of(pinged(uri));
    CHECK(said.find('\x1b') == std::string::npos);
    CHECK(said.find("[2J") != std::string::npos);
  }
  Running going(by_hand([](cci::Endpoint& endpoint, cci::Event& event) {
    if (event.type == cci::EventType::connect_request) static_cast<void>(endpoint.accept(event, 0));
    if (event.type == cci::EventType::receive) endpoint.disconnect(event.connection);
    return true;
  }));
  const std::string uri = going.uri();
  const CommandEnd end = pinged(uri);
  CHECK(of(end).rfind("network: the connection is lost (", 0) == 0);
  CHECK(of(end).find("): " + uri + ": try again") != std::string::npos);
}
