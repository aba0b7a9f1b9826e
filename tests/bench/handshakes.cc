// Sessions that begin and end at once, for `./do bench`: how many whole handshakes a second a receiver does. Each has a connection
// of its own, whose ends prove who they are, the handshake of the session in it, and the Open, which the receiver judges and
// answers. Then it is aborted: nothing is sent. The receiver is a process of its own (`ccixfer recv --root`), whoever it is.
//   handshakes KEY_FILE URI COUNT AT_ONCE    prints the seconds that COUNT sessions took, after a tenth more as warm-up
// The receiver must grant the identity of KEY_FILE `write = ["."]`. Ends with 1 and a line if any session fails.
#include <fmt/core.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "app/devices/node.h"
#include "app/main/farewell.h"
#include "app/main/forwarder.h"
#include "app/main/session_trust.h"
#include "app/main/turn_loop.h"
#include "app/session/dialler.h"
#include "app/session/hub.h"
#include "app/session/link.h"
#include "app/session/link_seal.h"
#include "core/host/entropy.h"
#include "core/trust/identity.h"

namespace ccixfer::program {
namespace {

class AnyReceiver final : public connection::HopTrust {
 public:
  explicit AnyReceiver(trust::Identity identity) : identity_(std::move(identity)) {}
  trust::HandshakeOptions handshake(trust::HandshakeSide side) override {
    return {.side = side, .identity = identity_, .authority = std::nullopt, .wall_time_s = wall_time_s(), .prefers = std::nullopt};
  }
  Result<void> admit_acceptor(const trust::ProvedPeer& /*peer*/, std::string_view /*uri*/) override { return {}; }
  Result<void> admit_dialler(const trust::ProvedPeer& /*peer*/, ports::Role /*role*/) override { return {}; }

 private:
  trust::Identity identity_;
};

// From the dial to the Abort.
class Session {
 public:
  Session(cci::Endpoint& endpoint, session::Hub& hub, const session::SealSetup& seal, const std::string& uri,
          ports::Entropy& entropy)
      : hub_(hub), link_(endpoint, hello(entropy), forwarder_), dialler_(endpoint, link_, uri, entropy.next_u64()) {
    link_.secure(seal);
    dialler_.set_lanes(1);
    dialler_.set_patience(std::chrono::seconds(10));
    hub_.add_link(&link_);
    hub_.add_dialler(&dialler_);
  }
  ~Session() {
    forwarder_.detach();
    hub_.remove_dialler(&dialler_);
    hub_.remove_link(&link_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void turn() {
    if (!asked_ && !link_.live_lanes().empty() && link_.is_secured()) {
      asked_ = true;
      for (const session::Message& part : session::cut(session::Open{session::option_recursive | session::option_directory, ""}))
        link_.post(part);
    }
    if (!opened_ && forwarder_.opened()) {
      opened_ = true;
      abort_session(link_, nullptr, {ErrorKind::interrupted, "only the handshake was wanted"});
    }
  }
  [[nodiscard]] bool ended() const { return opened_ && link_.messages_delivered(); }
  [[nodiscard]] const Error* failure() const {
    if (opened_) return nullptr;
    if (forwarder_.lost()) return &*forwarder_.lost();
    return dialler_.failure();
  }

 private:
  static session::Hello hello(ports::Entropy& entropy) {
    session::Hello hello;
    hello.sealed = true;
    for (auto& byte : hello.transfer) byte = static_cast<uint8_t>(entropy.next_u64());
    return hello;
  }

  session::Hub& hub_;
  Forwarder forwarder_;
  session::Link link_;
  session::Dialler dialler_;
  bool asked_ = false;   // Open is posted
  bool opened_ = false;  // and answered, and the Abort is posted
};

class Diallers final : public LoopHandler {
 public:
  Diallers(Node& node, Counters& counters, trust::Identity identity, std::string uri, size_t count, size_t at_once)
      : endpoint_(*node.endpoint),
        hub_(endpoint_, counters),
        seal_{std::move(identity), std::nullopt, wall_time_s},
        uri_(std::move(uri)),
        warm_up_(count / 10),
        count_(warm_up_ + count),
        at_once_(at_once) {}

  bool turn(Instant now) override {
    hub_.turn(now);
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      Session& session = *it;
      session.turn();
      if (session.failure() != nullptr) {
        failure_ = session.failure()->message;
        return false;
      }
      if (!session.ended()) {
        ++it;
        continue;
      }
      it = sessions_.erase(it);
      if (++ended_ == warm_up_) since_ = now;
    }
    took_ = now - since_;
    while (begun_ < count_ && sessions_.size() < at_once_) {
      sessions_.emplace_back(endpoint_, hub_, seal_, uri_, entropy_);
      ++begun_;
      dials_ = true;
    }
    return ended_ < count_;
  }
  // Those that were begun in this turn dial in the next one.
  Instant next_deadline() const override { return std::exchange(dials_, false) ? Instant{} : hub_.next_deadline(); }
  void on_signal(int /*signal_number*/, Instant /*now*/) override { failure_ = "interrupted"; }

  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] Duration took() const { return took_; }

 private:
  cci::Endpoint& endpoint_;
  session::Hub hub_;
  const session::SealSetup seal_;
  const std::string uri_;
  const size_t warm_up_, count_, at_once_;
  host::SystemEntropy entropy_;
  std::list<Session> sessions_;
  size_t begun_ = 0, ended_ = 0;
  mutable bool dials_ = false;
  Instant since_{};
  Duration took_{};
  std::string failure_;
};

int run(const std::string& key_file, const std::string& uri, size_t count, size_t at_once) {
  const auto failed = [](std::string_view why) {
    fmt::print(stderr, "handshakes: {}\n", why);
    return 1;
  };
  std::ifstream in(key_file);
  const std::string pem(std::istreambuf_iterator<char>(in), {});
  const auto identity = trust::Identity::from_key(pem, key_file);
  if (!identity) return failed(identity.error().message);
  TurnLoop loop;
  Counters counters;
  host::SystemEntropy entropy;
  const auto device = chosen_device(Config{}, std::nullopt);
  if (!device) return failed(device.error().message);
  NodeOptions options;
  options.waker = loop.waker();
  options.trust = std::make_shared<AnyReceiver>(*identity);
  auto node = make_node(*device, options, entropy, counters);
  if (!node) return failed(node.error().message);
  Diallers diallers(*node, counters, *identity, uri, count, at_once);
  loop.run(diallers);
  if (!diallers.failure().empty()) return failed(diallers.failure());
  fmt::print("{}\n", std::chrono::duration<double>(diallers.took()).count());
  return 0;
}

std::optional<size_t> number(std::string_view text) {
  size_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace
}  // namespace ccixfer::program

int main(int argc, char** argv) {
  using namespace ccixfer::program;
  const auto count = argc == 5 ? number(argv[3]) : std::nullopt;
  const auto at_once = argc == 5 ? number(argv[4]) : std::nullopt;
  if (count && at_once && *count >= 10) return run(argv[1], argv[2], *count, *at_once);
  fmt::print(stderr, "handshakes KEY_FILE URI COUNT AT_ONCE    at least 10 in all\n");
  return 1;
}
