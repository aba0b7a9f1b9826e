// Whole runs of small scenarios: what happened is told as it happened, each fault does what it says, and an end is told as it was.
#include "app/simulate/simulation.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::simulate;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// 2 MB at 1 MB/s: two seconds, within which a fault can come.
const std::string slow_pair = R"([link.lan]
rate = "8Mb/s"
delay = "1ms"
[node.a]
links = ["lan"]
[node.b]
links = ["lan"]
[[transfer]]
from = "a"
to = "b"
large = "2MB"
)";

// Two sites with a router each; each way out has 1 MB/s.
const std::string two_sites = R"([link.wan]
wan = true
subnet = 9
rate = "8Mb/s"
[link.east]
as = 1
subnet = 1
[link.west]
as = 2
subnet = 1
[node.a]
links = ["east"]
[node.b]
links = ["west"]
[router.r1]
links = ["east", "wan"]
[router.r2]
links = ["west", "wan"]
[[transfer]]
from = "a"
to = "b"
large = "2MB"
)";

struct Told {
  Duration at;
  const ScenarioFault* fault;
  bool over;
};

struct Ran {
  explicit Ran(const std::string& text, uint64_t seed = 1) {
    auto parsed = parse_scenario("w.toml", text);
    INFO((parsed ? "" : parsed.error().message));
    REQUIRE(parsed);
    scenario = std::move(*parsed);
    WorldNews news;
    news.on_fault = [this](Duration at, const ScenarioFault& fault, bool over) { faults.push_back({at, &fault, over}); };
    news.on_end = [this](Duration at, const TransferOutcome& one) {
      ends.push_back(at);
      CHECK_FALSE(one.verified);  // that comes after all
    };
    outcome = simulate::simulate(scenario, seed, news);
    REQUIRE(outcome.transfers.size() == scenario.transfers.size());
  }
  [[nodiscard]] const TransferOutcome& one(size_t index = 0) const { return outcome.transfers.at(index); }
  Scenario scenario;
  std::vector<Told> faults;
  std::vector<Duration> ends;
  WorldOutcome outcome;
};

// A link of its own, by which the world goes on after the end of what happens on the first one.
std::string and_a_long_one(const std::string& start) {
  return R"([link.aside]
[node.x]
links = ["aside"]
[node.y]
links = ["aside"]
)" + slow_pair +
         "name = \"looked-at\"\n[[transfer]]\nname = \"aside\"\nfrom = \"x\"\nto = \"y\"\nentries = 1\nstart = \"" + start + "\"\n";
}

}  // namespace

TEST_CASE("simulation__a_transfer__ends_well_and_everything_is_told") {
  const Ran ran(slow_pair + "start = \"500ms\"\nentries = 10\n");
  const TransferOutcome& one = ran.one();
  CHECK(one.transfer == &ran.scenario.transfers[0]);
  CHECK(one.end.kind == ErrorKind::ok);
  CHECK(one.verified);
  CHECK(one.runs == 1);
  CHECK(one.began == Duration(milliseconds(500)));
  CHECK(one.took > Duration(seconds(2)));  // what the rate of the link allows
  CHECK(one.took < Duration(seconds(3)));
  CHECK(one.tally.files > 1);
  CHECK(one.tally.bytes >= 2'000'000);
  CHECK(one.tally.files_failed == 0);
  REQUIRE(ran.ends.size() == 1);
  CHECK(ran.ends[0] == one.began + one.took);
  CHECK(ran.outcome.took == one.began + one.took);
  CHECK(ran.outcome.seed == 1);
  CHECK(ran.outcome.end.kind == ErrorKind::ok);
  CHECK(ran.outcome.faults == 0);
  CHECK(ran.outcome.resets == 0);
  CHECK(ran.outcome.corruptions == 0);
  CHECK(ran.outcome.bytes_delivered > 2'000'000);
  CHECK(ran.outcome.events > 100);
  CHECK(ran.faults.empty());
  CHECK(Ran(slow_pair + "start = \"500ms\"\nentries = 10\n").outcome.trace_hash == ran.outcome.trace_hash);
  CHECK(Ran(slow_pair + "start = \"500ms\"\nentries = 10\n", 2).outcome.trace_hash != ran.outcome.trace_hash);
}

TEST_CASE("simulation__trace_and_stop__as_asked") {
  const auto scenario = parse_scenario("w.toml", std::string(slow_pair).insert(11, "window = \"4KiB\"\n"));  // many events
  REQUIRE(scenario);
  size_t lines = 0, asked = 0;
  WorldNews news;
  news.on_trace = [&](std::string_view line) { lines += line.empty() ? 0u : 1u; };
  const WorldOutcome whole = simulate::simulate(*scenario, 1, news);
  CHECK(lines > 100);
  CHECK(whole.end.kind == ErrorKind::ok);
  // It is asked now and then, not after each event, and then the run ends where it is.
  news.on_trace = {};
  news.stop = [&] { return ++asked == 2; };
  const WorldOutcome stopped = simulate::simulate(*scenario, 1, news);
  CHECK(asked == 2);
  CHECK(stopped.events < whole.events);
  CHECK(stopped.events >= 1024);
  CHECK(stopped.end.kind != ErrorKind::ok);
}

TEST_CASE("simulation__limits__end_what_has_not_ended") {
  const Ran time("time_max = \"1s\"\n" + slow_pair);
  CHECK(time.one().end.kind == ErrorKind::timeout);
  CHECK(time.one().end.message == "time_max is over: the transfer has not ended");
  CHECK(time.one().took == Duration(seconds(1)));
  CHECK_FALSE(time.one().verified);
  CHECK(time.outcome.end.kind == ErrorKind::timeout);
  CHECK(time.outcome.end.message == "transfer1: time_max is over: the transfer has not ended");
  CHECK(time.outcome.took == Duration(seconds(1)));
  const Ran events("events_max = 300\n" + slow_pair);
  CHECK(events.one().end.message == "events_max events have happened: the transfer has not ended");
  CHECK(events.outcome.events == 300);
  // What had ended stays as it ended.
  const Ran late(and_a_long_one("2h"));
  CHECK(late.one(0).end.kind == ErrorKind::ok);
  CHECK(late.one(0).verified);
  CHECK(late.one(1).end.kind == ErrorKind::timeout);
  CHECK(late.one(1).runs == 0);
  CHECK(late.outcome.end.message == "aside: time_max is over: the transfer has not ended");
}

TEST_CASE("simulation__disk_of_the_receiver_is_full__only_its_transfer_fails") {
  const Ran ran(and_a_long_one("0s").replace(and_a_long_one("0s").find("[node.b]\n"), 9, "[node.b]\ndisk = \"1MB\"\n"));
  CHECK(ran.one(0).end.kind != ErrorKind::ok);
  CHECK(ran.one(1).end.kind == ErrorKind::ok);
  CHECK(ran.outcome.end.kind == ran.one(0).end.kind);
  CHECK(ran.outcome.end.message == "looked-at: " + ran.one(0).end.message);
}

TEST_CASE("simulation__sender_crashes__for_ever_or_runs_again") {
  const std::string crash = "[[fault]]\nat = \"1s\"\nkind = \"crash\"\nnode = \"a\"\n";
  const Ran gone(slow_pair + crash);
  CHECK(gone.one().end.kind == ErrorKind::interrupted);
  CHECK(gone.one().end.message == "its host crashed and did not come back");
  CHECK(gone.one().runs == 1);
  CHECK(gone.one().took == Duration(seconds(1)));
  CHECK(gone.outcome.faults == 1);
  REQUIRE(gone.faults.size() == 1);
  CHECK(gone.faults[0].at == Duration(seconds(1)));
  CHECK(gone.faults[0].fault == &gone.scenario.faults[0]);
  CHECK_FALSE(gone.faults[0].over);

  const Ran again(slow_pair + crash + "for = \"100s\"\n");
  CHECK(again.one().end.kind == ErrorKind::ok);
  CHECK(again.one().verified);
  CHECK(again.one().runs == 2);
  CHECK(again.one().began == Duration(0));
  CHECK(again.one().took > Duration(seconds(101)));
  CHECK(again.one().tally.bytes_sent > 2'000'000);  // those of the first run are in it
  CHECK(again.one().tally.files == 1);
  REQUIRE(again.faults.size() == 2);
  CHECK(again.faults[1].at == Duration(seconds(101)));
  CHECK(again.faults[1].over);
  CHECK(again.outcome.faults == 1);

  // Before it was due: it begins when it is due, once, or not at all if the host is still away.
  const Ran before(slow_pair + "start = \"5s\"\n" + crash + "for = \"1s\"\n");
  CHECK(before.one().end.kind == ErrorKind::ok);
  CHECK(before.one().runs == 1);
  CHECK(before.one().began == Duration(seconds(5)));
  const Ran during(slow_pair + "start = \"2s\"\n" + crash + "for = \"4s\"\n");
  CHECK(during.one().end.kind == ErrorKind::ok);
  CHECK(during.one().runs == 1);
  CHECK(during.one().began == Duration(seconds(2)));
  CHECK(during.one().took > Duration(seconds(5)));

  // After the end nothing runs again, and a second crash of what is down is none.
  const Ran ended(and_a_long_one("60s") + "[[fault]]\nat = \"50s\"\nkind = \"crash\"\nnode = \"a\"\nfor = \"2s\"\n" +
                  "[[fault]]\nat = \"51s\"\nkind = \"crash\"\nnode = \"a\"\n");
  CHECK(ended.one(0).end.kind == ErrorKind::ok);
  CHECK(ended.one(0).verified);
  CHECK(ended.one(0).runs == 1);
  CHECK(ended.outcome.faults == 1);
  CHECK(ended.faults.size() == 2);
}

TEST_CASE("simulation__receiver_crashes__comes_back_and_gets_the_rest") {
  const std::string crash = "[[fault]]\nat = \"1s\"\nkind = \"crash\"\nnode = \"b\"\n";
  const Ran back(slow_pair + crash + "for = \"100ms\"\n");
  CHECK(back.one().end.kind == ErrorKind::ok);
  CHECK(back.one().verified);
  CHECK(back.one().runs == 1);
  const Ran gone(slow_pair + "timeout = \"5s\"\n" + crash);
  CHECK(gone.one().end.kind == ErrorKind::timeout);
  CHECK_FALSE(gone.one().verified);
  CHECK(gone.one().took >= Duration(seconds(5)));
  CHECK(gone.one().took < Duration(seconds(20)));  // its own timeout, not time_max
}

TEST_CASE("simulation__resets__of_a_link_and_of_a_node") {
  for (const char* what : {"link = \"lan\"", "node = \"a\"", "node = \"b\""}) {
    INFO(what);
    const Ran ran(and_a_long_one("0s") + "[[fault]]\nat = \"1s\"\nkind = \"reset\"\n" + what + "\n");
    CHECK(ran.outcome.resets > 0);
    CHECK(ran.outcome.faults == 1);
    CHECK(ran.faults.size() == 1);
    CHECK(ran.outcome.end.kind == ErrorKind::ok);
    CHECK(ran.one().tally.bytes_sent > 2'000'000);
  }
  for (const char* what : {"link = \"aside\"", "node = \"x\""}) {  // elsewhere: nothing goes out again
    const Ran ran(and_a_long_one("0s") + "[[fault]]\nat = \"1s\"\nkind = \"reset\"\n" + what + "\n");
    CHECK(ran.outcome.end.kind == ErrorKind::ok);
    CHECK(ran.one().tally.bytes_sent == 2'000'000);
  }
}

TEST_CASE("simulation__partitions__hold_what_they_name_for_as_long_as_they_last") {
  const auto partition = [](const std::string& at, const std::string& what, const std::string& lasts) {
    return "[[fault]]\nat = \"" + at + "\"\nkind = \"partition\"\n" + what + "\n" +
           (lasts.empty() ? "" : "for = \"" + lasts + "\"\n");
  };
  for (const char* what : {"link = \"lan\"", "node = \"a\"", "node = \"b\"", "node = \"a\"\nlink = \"lan\""}) {
    INFO(what);
    const Ran ran(slow_pair + partition("1s", what, "3s"));
    CHECK(ran.one().end.kind == ErrorKind::ok);
    CHECK(ran.one().took > Duration(seconds(4)));
    CHECK(ran.one().took < Duration(seconds(15)));
    REQUIRE(ran.faults.size() == 2);
    CHECK(ran.faults[1].over);
    CHECK(ran.faults[1].at == Duration(seconds(4)));
  }
  for (const char* what : {"link = \"aside\"", "node = \"x\""}) {
    INFO(what);
    const Ran ran(and_a_long_one("0s") + partition("1s", what, ""));
    CHECK(ran.one().took < Duration(seconds(3)));
  }
  // A node's address on another link is not on this one.
  const std::string both = R"([link.other]
[node.c]
links = ["other"]
)" + slow_pair;
  const std::string on_both = std::string(both).replace(both.find("links = [\"lan\"]"), 15, "links = [\"lan\", \"other\"]");
  const Ran other(on_both + partition("1s", "node = \"a\"\nlink = \"other\"", ""));
  CHECK(other.one().end.kind == ErrorKind::ok);
  CHECK(other.one().took < Duration(seconds(3)));
  // The second begins within the first and lasts longer: only its end joins the link again. One for ever is never over.
  const Ran overlap(slow_pair + partition("1s", "link = \"lan\"", "2s") + partition("2s", "node = \"a\"", "5s"));
  CHECK(overlap.one().end.kind == ErrorKind::ok);
  CHECK(overlap.one().took > Duration(seconds(7)));
  const Ran always(slow_pair + "timeout = \"5s\"\n" + partition("1s", "link = \"lan\"", ""));
  CHECK(always.one().end.kind == ErrorKind::timeout);
  CHECK(always.faults.size() == 1);
}

TEST_CASE("simulation__routers__carry_stop_and_come_back") {
  const Ran plain(two_sites);
  CHECK(plain.one().end.kind == ErrorKind::ok);
  CHECK(plain.one().verified);
  CHECK(plain.one().took > Duration(seconds(2)));

  const std::string stop = "[[fault]]\nat = \"1s\"\nkind = \"stop\"\nnode = \"r1\"\n";
  const std::string later = "[[transfer]]\nfrom = \"b\"\nto = \"a\"\nentries = 1\nstart = \"20s\"\n";
  const Ran back(two_sites + later + stop + "for = \"500ms\"\n");
  CHECK(back.one().end.kind == ErrorKind::ok);
  CHECK(back.one().verified);
  CHECK(back.one(1).end.kind == ErrorKind::ok);
  REQUIRE(back.faults.size() == 2);
  CHECK(back.faults[1].over);
  CHECK(back.faults[1].at > Duration(milliseconds(1500)));  // it drained before it ended

  const Ran gone(two_sites + later + "timeout = \"5s\"\n" + stop);  // it drains, and then there is no way any more
  CHECK(gone.one(0).end.kind == ErrorKind::ok);
  CHECK(gone.one(1).end.kind != ErrorKind::ok);
  CHECK(gone.faults.size() == 1);

  // Who is stopped is not stopped again, and who crashed while it drained is started by the end of its crash alone.
  const Ran twice(two_sites + stop + "for = \"500ms\"\n" + "[[fault]]\nat = \"1001ms\"\nkind = \"stop\"\nnode = \"r1\"\n");
  CHECK(twice.outcome.faults == 1);
  CHECK(twice.one().end.kind == ErrorKind::ok);
  const Ran crash(two_sites + "[[fault]]\nat = \"1s\"\nkind = \"crash\"\nnode = \"r2\"\nfor = \"1s\"\n");
  CHECK(crash.one().end.kind == ErrorKind::ok);
  CHECK(crash.faults.size() == 2);
  // It has drained and is away; a crash and its end come before it was to be started: then it runs already.
  const Ran away(two_sites + "start = \"20s\"\n" + stop + "for = \"5s\"\n" +
                 "[[fault]]\nat = \"3s\"\nkind = \"crash\"\nnode = \"r1\"\nfor = \"1s\"\n");
  CHECK(away.one().end.kind == ErrorKind::ok);
  CHECK(away.faults.size() == 3);
  const Ran both(two_sites + stop + "for = \"100ms\"\n" +
                 "[[fault]]\nat = \"1001ms\"\nkind = \"crash\"\nnode = \"r1\"\nfor = \"1s\"\n");
  CHECK(both.one().end.kind == ErrorKind::ok);
  CHECK(both.outcome.faults == 2);
  CHECK(both.faults.size() == 3);
}

TEST_CASE("simulation__wan_for_two_as__is_for_no_third") {
  // The third AS is reached by the public WAN only, which is slow; the dedicated one is for 1 and 2.
  const std::string world = R"([link.public]
wan = true
subnet = 9
rate = "8Mb/s"
[link.dedicated]
wan = true
subnet = 8
between = [1, 2]
rate = "800Mb/s"
[link.east]
as = 1
subnet = 1
[link.west]
as = 2
subnet = 1
[node.a]
links = ["east"]
[node.b]
links = ["west"]
[router.r1]
links = ["east", "public", "dedicated"]
[router.r2]
links = ["west", "public", "dedicated"]
[[transfer]]
from = "a"
to = "b"
large = "2MB"
)";
  const Ran fast(world);
  CHECK(fast.one().end.kind == ErrorKind::ok);
  CHECK(fast.one().took < Duration(seconds(2)));
  // The router's own metric decides.
  std::string by_hops = world;
  const std::string routers[] = {"links = [\"east\", \"public\", \"dedicated\"]\n",
                                 "links = [\"west\", \"public\", \"dedicated\"]\n"};
  for (const std::string& line : routers) by_hops.insert(by_hops.find(line), "fragment = \"4096\"\nmemory = \"64KiB\"\n");
  const Ran small(by_hops);
  CHECK(small.one().end.kind == ErrorKind::ok);
  CHECK(small.outcome.events > 2 * fast.outcome.events);  // 16 times the fragments
}

TEST_CASE("simulation__several_transfers__each_below_its_name") {
  const Ran ran(slow_pair + "name = \"one\"\n" +
                "[[transfer]]\nname = \"two\"\nfrom = \"a\"\nto = \"b\"\nentries = 5\narchive = false\nlanes = 4\n" +
                "[[transfer]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\nentries = 5\nodd_names = true\n");
  for (size_t i = 0; i < 3; ++i) {
    CHECK(ran.one(i).end.kind == ErrorKind::ok);
    CHECK(ran.one(i).verified);
    CHECK(ran.one(i).runs == 1);
  }
  CHECK(ran.ends.size() == 3);
}
