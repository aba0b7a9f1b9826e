// What the receipt of a source says of what it sent, and of what the destination has kept.
#include <catch2/catch.hpp>
#include <map>

#include "app/session/tweaks.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

class Heard final : public receipt::Sink {
 public:
  std::map<std::string, receipt::Entry> entries;
  void on_entry(const receipt::Entry& entry) override { entries[entry.path] = entry; }
  void on_unlisted() override {}
};

}  // namespace

TEST_CASE("receipts__modes_are_changed_on_their_way__the_receipt_has_those_that_were_sent") {
  const TempDir dir;
  dir.file("t/a", "A");
  dir.file("t/d/b", "B");
  Heard heard;
  auto tweaks = std::make_shared<session::Tweaks>();
  REQUIRE(tweaks->modes.add("D2751,F640", 022));
  send::SourceOptions options = options_of({dir.path("t") + "/"}, archive);
  options.receipt = &heard;
  const bool is_changed = GENERATE(true, false);
  if (is_changed) options.tweaks = tweaks;
  Bench bench(options);
  bench.run();
  REQUIRE(heard.entries.size() == 3);
  CHECK((heard.entries["a"].mode == 0640) == is_changed);
  CHECK((heard.entries["d/b"].mode == 0640) == is_changed);
  CHECK((heard.entries["d"].mode == 02751) == is_changed);
  CHECK(heard.entries["a"].sha256.has_value());
}

TEST_CASE("receipts__what_the_destination_keeps__is_not_in_it") {
  const TempDir dir;
  for (const char* name : {"t/kept", "t/sent", "t/there"}) dir.file(name, "A");
  Heard heard;
  send::SourceOptions options = options_of({dir.path("t") + "/"}, archive | session::option_update);
  options.receipt = &heard;
  Bench bench(options);
  bench.receiver.decide = [](const session::Entry& entry, uint64_t) {
    if (entry.path == "kept") return Verdict::kept;
    return entry.path == "there" ? Verdict::unchanged : entry.path == "sent" ? Verdict::send : Verdict::done;
  };
  bench.run();
  CHECK(heard.entries.size() == 2);
  CHECK(heard.entries.contains("sent"));
  CHECK(heard.entries.contains("there"));
  CHECK(bench.tally().files_unchanged == 2);
}

}  // namespace ccixfer::send_test
