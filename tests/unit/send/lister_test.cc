// The walk ahead of the announcer, and digests.
#include "app/send/lister.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"
#include "tests/unit/send/walk_lines.h"

namespace ccixfer::send_test {
namespace {

using send::Lister;

class HeardListing final : public send::ListerHandler {
 public:
  std::optional<Error> error;
  uint64_t bytes = 0;
  void on_selection_failed(const Error& failed) override { error = failed; }
  void on_listed(uint64_t listed) override { bytes += listed; }
};

struct ListerBench {
  ListerBench(const std::vector<std::string>& sources, bool digests = false, uint32_t batch_entries = 1024)
      : ListerBench(options_of(sources, batch_entries), digests) {}
  explicit ListerBench(send::WalkOptions options, bool digests = false)
      : walk(std::make_shared<send::WalkHold>(jobs, std::move(options))), lister(jobs, walk, digests, heard) {
    lister.select();
    reap();
  }
  ~ListerBench() {
    jobs->source_ends();
    walk.reset();
  }
  ListerBench(const ListerBench&) = delete;
  ListerBench& operator=(const ListerBench&) = delete;
  static send::WalkOptions options_of(const std::vector<std::string>& sources, uint32_t batch_entries) {
    send::WalkOptions options;
    options.sources = sources;
    options.batch_entries_max = batch_entries;
    options.directory = sources.size() > 1;
    return options;
  }
  void reap() {
    while (work.in_flight() > 0) work.reap();
  }
  void walk_on() {
    lister.advance_walk();
    reap();
  }

  WatchedFiles files;
  QueuePool work{files};
  std::shared_ptr<send::Jobs> jobs = std::make_shared<send::Jobs>(work);
  HeardListing heard;
  std::shared_ptr<send::WalkHold> walk;
  Lister lister;
};

void take_all(send::Listings& listings) {
  while (listings.front() != nullptr) listings.pop();
}

TEST_CASE("lister__source_is_not_there__said_and_nothing_is_listed") {
  const TempDir dir;
  ListerBench bench({dir.path("nothing")});
  REQUIRE(bench.heard.error);
  CHECK(bench.heard.error->kind == ErrorKind::source_selection);
  bench.lister.advance_walk();
  CHECK(bench.work.in_flight() == 0);
}

TEST_CASE("lister__nobody_takes_records__lists_a_few_batches_ahead_and_no_more") {
  const TempDir dir;
  for (int i = 0; i < 20; ++i) dir.file("t/" + std::to_string(i), "xy");
  ListerBench bench({dir.path("t")}, false, 2);
  bench.lister.advance_walk();
  bench.lister.advance_walk();
  CHECK(bench.work.in_flight() == 1);
  bench.reap();
  for (int i = 0; i < 10; ++i) bench.walk_on();
  CHECK(bench.lister.listings().batches() == send::batches_ahead_max);
  CHECK(bench.heard.bytes == 10);  // the directory and five files
  for (int i = 0; i < 20; ++i) {
    take_all(bench.lister.listings());
    bench.walk_on();
  }
  take_all(bench.lister.listings());
  CHECK(bench.lister.over());
  CHECK(bench.heard.bytes == 40);
}

// A step that looked at all of them would be silent for too long where a file server is slow.
TEST_CASE("lister__names_that_are_excluded__end_a_step_without_records_and_each_is_a_sign_of_life") {
  const TempDir dir;
  constexpr uint64_t names = 10'000;
  for (uint64_t i = 0; i < names; ++i) dir.file("t/n" + std::to_string(i), "");
  dir.file("t/z", "");
  ListerBench bench(ruled({dir.path("t/")}, {"- n*"}));
  std::vector<uint64_t> steps = {bench.jobs->steps().load()};
  std::vector<std::string> listed;
  while (!bench.lister.over()) {
    bench.walk_on();
    steps.push_back(bench.jobs->steps().load());
    for (send::Listings& all = bench.lister.listings(); all.front() != nullptr; all.pop()) listed.emplace_back(all.front_path());
  }
  CHECK(listed == std::vector<std::string>{"", "z", ""});
  CHECK(steps.size() == 1 + 3);
  const uint64_t parts = steps.back() - steps.front() - names;
  CHECK(parts > 3 + 10);  // of the directory, beside the ends of the steps
  CHECK(parts < 500);
}

TEST_CASE("lister__digests__are_in_the_records_before_they_are_taken") {
  const TempDir dir;
  dir.file("t/a", "content");
  ListerBench bench({dir.path("t")}, true);
  memory::Pool pool(session::segment_bytes_max, 2);
  send::BufferShare share(pool, nullptr);
  bench.walk_on();
  CHECK(bench.lister.listings().front() == nullptr);
  {
    const send::Buffer one = share.lend();
    bench.lister.start_digests(share, true);
    CHECK(bench.work.in_flight() == 0);  // the other buffer is kept
  }
  bench.lister.start_digests(share, true);
  CHECK(share.held() == 1);
  bench.lister.start_digests(share, false);
  CHECK(share.held() == 1);  // it is started once
  bench.reap();
  CHECK(share.held() == 0);
  REQUIRE(bench.lister.listings().front() != nullptr);
  CHECK_FALSE(bench.lister.listings().front()->has_digest);  // the directory
  bench.lister.listings().pop();
  CHECK(bench.lister.listings().front()->has_digest);
}

TEST_CASE("lister__source_is_listed_and_its_entries_end__its_root_is_closed") {
  const TempDir dir;
  dir.file("a/f", "");
  dir.file("b/f", "");
  ListerBench bench({dir.path("a"), dir.path("b")});
  send::EntryTable entries;
  send::Entry& entry = entries.at(entries.add(0, 0));
  for (int i = 0; i < 4; ++i) bench.walk_on();
  bench.lister.release_roots(entries);
  bench.jobs->flush();
  bench.reap();
  CHECK(bench.files.open_now == 2);  // their records are not even taken
  take_all(bench.lister.listings());
  bench.lister.release_roots(entries);
  bench.jobs->flush();
  bench.reap();
  CHECK(bench.files.open_now == 1);
  entries.end(entry);
  bench.lister.release_roots(entries);
  bench.jobs->flush();
  bench.reap();
  CHECK(bench.files.open_now == 0);
}

}  // namespace
}  // namespace ccixfer::send_test
