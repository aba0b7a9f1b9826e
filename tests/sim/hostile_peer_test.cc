// The other end of a transfer is proved and let in, and then talks nonsense: a receiver that answers and asks for what was never
// offered, a server of a pull that does the same. The program at this end goes through it as a whole: it ends with a named error,
// in time, makes no name, and reads nothing that was not asked of it. That each word by itself is refused is unit/send's and
// unit/recv's to show.
#include <catch2/catch.hpp>
#include <deque>

#include "app/simulate/site.h"
#include "core/base/log.h"
#include "tests/sim/seeds.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::testing {
namespace {

using namespace std::chrono_literals;
using simulate::Site;

session::SealSetup somebody() {
  return {trust::Identity::generate().value(), std::nullopt, [] { return int64_t{1'800'000'000}; }};
}

class Liar final : public sim::Actor, public session::AcceptHandler, public session::LinkHandler {
 public:
  static constexpr uint64_t credit = 2;
  Liar(Site& site, uint64_t seed, bool is_push)
      : site_(site), is_push_(is_push), waits_for_entries_(is_push && seed % 4 != 0), random_(seed), entropy_(seed) {
    memory_ = std::make_shared<cci::MemoryTable>(entropy_, site.counters);
    sim::SimNetOptions net;
    net.networks = site.networks;
    net.listen = true;
    net.port = simulate::receiver_port;
    endpoint_ = std::make_unique<cci::Endpoint>(
        cci::EndpointOptions{},
        std::make_unique<stream::StreamTransport>(ports::TransportOptions{},
                                                  std::make_unique<sim::SimNet>(site.fabric, site.node, net), site.counters),
        memory_, site.counters);
    hub_ = std::make_unique<session::Hub>(*endpoint_, site.counters);
    hub_->set_accept_handler(this);
    site_.world.add_actor(site_.node, this);
  }
  ~Liar() override {
    site_.world.remove_actor(site_.node, this);
    hub_->set_accept_handler(nullptr);
    links_.clear();
  }

  void turn(Instant now) override {
    now_ = now;
    hub_->turn(now);
    while (endpoint_->mailboxes().next_completion()) ++arrived_;
    if (links_.empty() || is_lost_ || !is_open_ || now < next_lie_) return;
    if (waits_for_entries_ && arrived_ == 0) return;
    next_lie_ = after(now, 1ms);
    session::Link& link = *links_.back();
    for (size_t lies = random_.below(4); lies > 0 && link.control_queue_room() > 2; --lies, ++told) link.post(lie());
    for (const session::LaneIndex lane : link.live_lanes()) {
      if (!random_.chance(0.3)) continue;
      link.post_on_lane(lane, lane_lie());
      ++told;
    }
  }
  [[nodiscard]] Instant next_deadline() const override {
    return is_open_ && !is_lost_ ? std::min(hub_->next_deadline(), next_lie_) : hub_->next_deadline();
  }

  Result<session::Link*> on_new_session(const session::Hello& hello, Instant) override {
    links_.push_back(std::make_unique<session::Link>(*endpoint_, hello, *this));
    links_.back()->secure(*site_.seal);
    hub_->add_link(links_.back().get());
    is_open_ = is_lost_ = false;
    ++sessions;
    return links_.back().get();
  }
  session::Link* find_session(const session::Hello& hello) override {
    return !links_.empty() && links_.back()->session() == hello.session ? links_.back().get() : nullptr;
  }
  // As an honest receiver does, so that there are entries to lie about.
  void on_lane_up(session::LaneIndex lane) override {
    if (!is_open_ || !is_push_) return;
    const uint64_t mailbox = 1000 * sessions + 10u * lane, key = 77;
    if (memory_->mailboxes().open(mailbox, {.key = key}) != Status::success) return;
    for (uint64_t i = 0; i < credit; ++i) {
      buffers_.emplace_back(session::segment_bytes_max);
      CHECK(memory_->mailboxes().post(mailbox, buffers_.back(), i) == Status::success);
    }
    links_.back()->post_on_lane(lane, session::LaneOpen{random_.next(), mailbox, key, 1});
    links_.back()->post_on_lane(lane, session::Credit{credit, false});
  }
  void on_lane_down(session::LaneIndex) override {}
  void on_lane_message(session::LaneIndex, const session::Message&) override {}
  void on_message(const session::Message& message) override {
    if (!std::holds_alternative<session::OpenPart>(message) || is_open_) return;
    is_open_ = true;
    links_.back()->set_session(sessions);
    links_.back()->post(session::Opened{sessions, 1});
    on_lane_up(0);
    next_lie_ = now_;
  }
  void on_put(session::LaneIndex, uint64_t, Status) override {}
  void on_link_lost(const Error&) override { is_lost_ = true; }

  uint64_t told = 0, sessions = 0;

 private:
  uint64_t number() { return random_.chance(0.7) ? random_.below(8) : random_.chance(0.5) ? random_.next() : ~uint64_t{0}; }
  session::Message lie() {
    switch (random_.below(16)) {
      case 0:
        return session::Answer{number(),
                               {{static_cast<uint32_t>(1 + random_.below(5)), static_cast<session::Verdict>(random_.below(8))}}};
      case 1:
        return session::Want{number(), {{random_.below(2000), 1 + random_.below(1000)}}};
      case 2:
        return session::Resend{number(), random_.below(2000), number(), number()};
      case 3:
        return session::FileResults{{{number(), random_.chance(0.5) ? ErrorKind::ok : ErrorKind::file_io, 5}}};
      case 4:
        return session::Durable{number(), number()};
      case 5:
        return session::Summary{number(), number(), number(), number()};
      case 6:
        return session::FileEnd{number(), static_cast<session::SourceOutcome>(random_.below(4)), number(), false, {}};
      case 7:
        return session::End{number(), number(), number()};
      case 8:
        return session::Unlisted{random_.chance(0.5), "../../etc/passwd", "because"};
      case 9:
        return session::Alive{number(), number()};
      case 14:
        return session::Compare{number(), random_.below(4), 1, {{1, 2}}};
      case 15:
        return session::Same{number(), {{random_.below(2000), 1 + random_.below(1000)}}};
      case 10:
        return session::Bye{};
      case 11:
        return session::Opened{number() | 1, 3};
      case 12:
        return session::Queued{static_cast<uint32_t>(random_.below(9))};
      default:
        return session::HandshakePart{"more of a handshake"};
    }
  }
  session::Message lane_lie() {
    switch (random_.below(3)) {
      case 0:
        return session::LaneOpen{number(), number() >> 8, number(), session::stripes};
      case 1:
        return session::Credit{number(), random_.chance(0.5)};
      default:
        return session::Ask{number()};
    }
  }

  Site& site_;
  const bool is_push_, waits_for_entries_;
  uint64_t arrived_ = 0;  // segments
  std::deque<std::vector<std::byte>> buffers_;
  sim::Random random_;
  sim::SimEntropy entropy_;
  std::shared_ptr<cci::MemoryTable> memory_;
  std::unique_ptr<cci::Endpoint> endpoint_;
  std::unique_ptr<session::Hub> hub_;
  std::vector<std::unique_ptr<session::Link>> links_;
  Instant now_{}, next_lie_{};
  bool is_open_ = false, is_lost_ = false;
};

}  // namespace

TEST_CASE("hostile_peer__proved_and_then_nonsense__a_named_error_and_no_name_is_made") {
  const bool pull = GENERATE(false, true);
  std::map<ErrorKind, unsigned> ends;
  for (uint64_t seed = first_seed(); seed < first_seed() + seed_count(100); ++seed) {
    INFO((pull ? "pull" : "push") << ", seed " << seed);
    sim::World world(seed);
    sim::Fabric fabric(world);
    Site here(fabric, "A", {{"n", "10.0.0.1"}}), there(fabric, "B", {{"n", "10.0.0.2"}});
    here.seal = somebody();
    there.seal = somebody();
    here.verbose = verbose() ? 2 : 0;
    here.files.make_directory("/src/d");
    here.files.make_directory("/dst");
    for (int i = 0; i < 5; ++i) here.files.put("/src/d/f" + std::to_string(i), std::string(1000, 'x'));
    here.files.put("/src/large", std::string((4u << 20) + 5, 'y'));
    here.files.sync_all();
    const sim::Tree before = here.files.tree("/src");
    Liar liar(there, seed, !pull);
    simulate::DialPlan dial;
    dial.pull = pull;
    dial.uri = "sim://10.0.0.2:" + std::to_string(simulate::receiver_port);
    dial.directory = pull ? "/dst" : "/src";
    dial.options = session::option_recursive | session::option_directory | session::option_links;
    dial.timeout = 20s;
    simulate::Dialler dialler(here, dial);
    CHECK(world.run_until([&] { return dialler.ended(); }, after(world.now(), 10min), 3'000'000) == sim::RunEnd::reached);
    const Error result = dialler.result();
    CHECK(liar.told > 0);
    CHECK(result.kind != ErrorKind::bug);
    CHECK(result.kind != ErrorKind::ok);
    CHECK_FALSE(result.message.empty());
    CHECK(dialler.tally().files == 0);  // nothing was placed or came: nothing that is said to be there counts
    ++ends[result.kind];
    for (const auto& [path, entry] : here.files.tree("/dst")) CHECK(path.starts_with(".ccixfer"));
    CHECK(here.files.tree("/src").size() == before.size());
    world.crash(here.node);
    dialler.bury();
  }
  CHECK(ends[ErrorKind::protocol] > 0);
  if (verbose()) {
    for (const auto& [kind, count] : ends) WARN(error_row(kind).name << " x " << count);
  }
}

}  // namespace ccixfer::testing
