// Directories whose modes do not let their owner in, at a receiver that is not root: it writes into them all the same.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "app/filter/rules.h"
#include "tests/unit/recv/destination_rig.h"
#include "tests/unit/recv/not_root.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using namespace test;

namespace {

const DestinationOptions of_archive{.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0};

template <typename Tree>
uint32_t mode_of(const Tree& rig, const std::string& path) {
  struct stat stat {};
  REQUIRE(::lstat(rig.temporary.path(path).c_str(), &stat) == 0);
  return stat.st_mode & 07777u;
}

session::Entry left(const std::string& path) {
  session::Entry entry = directory_entry(path, session::EntryType::leave);
  entry.is_whole = true;
  return entry;
}

void set_mode(const Rig& rig, const std::string& path, uint32_t mode) {
  REQUIRE(::chmod(rig.temporary.path(path).c_str(), mode) == 0);
}

// d/ with a file, and maybe a directory with a file in it.
void deliver(Rig& rig, uint32_t mode, bool has_inner, const std::string& content) {
  std::vector<session::Entry> entries{directory_entry(""), directory_entry("d"), file_entry("d/f", content.size())};
  entries[1].mode = mode;
  if (has_inner) {
    entries.push_back(directory_entry("d/inner"));
    entries.push_back(file_entry("d/inner/f", content.size()));
    entries.push_back(left("d/inner"));
  }
  entries.push_back(left("d"));
  entries.push_back(left(""));
  rig.announce(entries);
  std::vector<uint64_t> files{2};
  if (has_inner) files.push_back(4);
  for (const uint64_t index : files) {
    REQUIRE(rig.source().verdicts[index] == session::Verdict::send);
    rig.source().put_pack({{index, content}});
    REQUIRE(rig.run_until_result(index));
    CHECK(rig.source().results[index].kind == ErrorKind::ok);
  }
  rig.finish(entries.size());
  CHECK(rig.source().summary->files_failed == 0);
  CHECK(mode_of(rig, "d") == mode);
}

class Listed final : public receipt::Sink {
 public:
  std::map<std::string, receipt::Entry> entries;
  uint64_t unlisted = 0;
  void on_entry(const receipt::Entry& entry) override { entries[entry.path] = entry; }
  void on_unlisted() override { ++unlisted; }
};

}  // namespace

// With descriptors to keep directories open, and without: then each is opened anew, and known by its generation.
TEST_CASE("directories__locked_by_their_modes__each_run_of_an_ordinary_account_writes_into_them") {
  const NotRoot account;
  const uint32_t mode = GENERATE(0311u, 0300u, 0600u, 0555u, 0u);
  const bool has_inner = GENERATE(true, false);
  INFO("mode " << mode << (has_inner ? ", with a directory in it" : ""));
  Rig rig(of_archive, 1, "", GENERATE(size_t{1024}, size_t{0}));
  deliver(rig, mode, has_inner, "one");
  rig.again();
  deliver(rig, mode, has_inner, "second");
  REQUIRE(::chmod(rig.temporary.path("d").c_str(), 0700) == 0);
  CHECK(rig.temporary.read("d/f") == "second");
  if (has_inner) CHECK(rig.temporary.read("d/inner/f") == "second");
}

TEST_CASE("directories__locked_by_their_modes__what_the_source_does_not_have_goes_from_them") {
  const NotRoot account;
  const uint32_t mode = GENERATE(0311u, 0300u, 0600u, 0u);
  const bool has_inner = GENERATE(true, false);
  const bool has_rules = GENERATE(true, false);  // of each directory
  INFO("mode " << mode << (has_inner ? ", with a directory in it" : "") << (has_rules ? ", with rules" : ""));
  DestinationOptions options = of_archive;
  options.deletes.emplace();
  filter::RulesBuilder rules([](const std::string&) { return Result<std::string>(""); }, false, false);
  if (has_rules) REQUIRE(rules.add_filter(": /.rules").has_value());
  options.deletes->rules = rules.take();
  Rig rig(options, 1, "", GENERATE(size_t{1024}, size_t{0}));
  deliver(rig, mode, has_inner, "one");
  CHECK(rig.session->destination->tally().delete_failed == 0);
  set_mode(rig, "d", 0700);
  rig.temporary.write("d/old", "old");
  if (has_inner) rig.temporary.write("d/inner/old", "old");
  std::filesystem::create_directory(rig.temporary.path("d/lost"));
  rig.temporary.write("d/lost/old", "old");
  set_mode(rig, "d/lost", mode);
  set_mode(rig, "d", mode);
  rig.again();
  deliver(rig, mode, has_inner, "second");
  CHECK(rig.session->destination->tally().delete_failed == 0);
  CHECK(rig.session->destination->tally().deleted == (has_inner ? 4 : 3));
  set_mode(rig, "d", 0700);
  for (const char* path : {"d/old", "d/inner/old", "d/lost"}) CHECK_FALSE(rig.temporary.has(path));
  CHECK(rig.temporary.read("d/f") == "second");
}

TEST_CASE("directories__locked_by_their_modes__a_later_name_of_a_file_in_one_is_linked_in_each_run") {
  const NotRoot account;
  const uint32_t mode = GENERATE(0311u, 0300u, 0600u, 0u);
  DestinationOptions options = of_archive;
  options.options |= session::option_hard_links;
  Rig rig(options, 1, "", GENERATE(size_t{1024}, size_t{0}));
  std::vector<session::Entry> entries{directory_entry(""), directory_entry("d"), file_entry("d/f", 3),
                                      left("d"),           file_entry("z", 3),   left("")};
  entries[1].mode = mode;
  entries[2].is_linked = entries[4].is_linked = true;
  entries[4].linked_to = "d/f";
  for (const std::string content : {"one", "two"}) {
    if (content == "two") {
      rig.again();
      ++entries[2].mtime.seconds;
      ++entries[4].mtime.seconds;
    }
    // What comes before the directory is left, and what comes when it has long been.
    rig.announce({entries.begin(), entries.begin() + 4});
    REQUIRE(rig.source().verdicts[2] == session::Verdict::send);
    rig.source().put_pack({{2, content}});
    REQUIRE(rig.run_until_result(2));
    rig.announce({entries.begin() + 4, entries.end()});
    CHECK(rig.source().verdicts[4] == session::Verdict::link);
    REQUIRE(rig.run_until_result(4));
    rig.finish(entries.size());
    CHECK(mode_of(rig, "d") == mode);
    CHECK(rig.temporary.read("z") == content);
    struct stat stat {};
    REQUIRE(::lstat(rig.temporary.path("z").c_str(), &stat) == 0);
    CHECK(stat.st_nlink == 2);
  }
  set_mode(rig, "d", 0700);
}

TEST_CASE("directories__locked_by_their_modes__a_dry_run_tells_of_no_failure_that_the_run_has_not") {
  const NotRoot account;
  const uint32_t mode = GENERATE(0311u, 0300u, 0600u, 0u);
  const bool is_ours = GENERATE(true, false);
  Place place(archive | session::option_dry_run);
  if (!is_ours) place.policy.uid = NotRoot::account + 1;
  EntryDecider decider(*place.root->opened(), *place.directories, place.policy, "", place.owner, place.linked);
  place.temporary.write("d/f", "one");
  std::filesystem::create_directory(place.temporary.path("d/inner"));
  REQUIRE(::chmod(place.temporary.path("d").c_str(), mode) == 0);
  session::Entry first = file_entry("d/f", 3), further = file_entry("z", 3);
  first.is_linked = further.is_linked = true;
  further.linked_to = "d/f";
  const DecidedEntries decided = decider.decide({directory_entry(""), directory_entry("d"), first, directory_entry("d/inner"),
                                                 file_entry("d/inner/f", 3), left("d/inner"), left("d"), further, left("")},
                                                0);
  REQUIRE(decided.decisions.size() == 9);
  const auto failures = std::count_if(decided.decisions.begin(), decided.decisions.end(),
                                      [](const Decision& one) { return one.verdict == session::Verdict::failed; });
  CHECK((failures == 0) == is_ours);
  CHECK(mode_of(place, "d") == mode);
  if (is_ours) {
    CHECK(decided.decisions[2].verdict == session::Verdict::send);
    CHECK(decided.decisions[4].verdict == session::Verdict::send);
    CHECK(decided.decisions[7].verdict == session::Verdict::make);
  }
  REQUIRE(::chmod(place.temporary.path("d").c_str(), 0700) == 0);
}

TEST_CASE("receipt__delivered_entries_that_the_receiver_may_not_read__listed_all_the_same") {
  const NotRoot account;
  const uint32_t mode = GENERATE(0u, 0755u);
  const bool is_again = GENERATE(false, true);  // all was there already
  CAPTURE(mode, is_again);
  Listed listed;
  DestinationOptions options = of_archive;
  options.receipt = &listed;
  Rig rig(options);
  rig.work.newest_first = GENERATE(false, true);  // a directory's mode does not overtake the look at what is in it
  std::vector<session::Entry> entries{directory_entry(""),
                                      file_entry("a", 3),
                                      directory_entry("d"),
                                      file_entry("d/f", 3),
                                      directory_entry("d/inner"),
                                      file_entry("d/inner/f", 3),
                                      directory_entry("d/inner", session::EntryType::leave),
                                      directory_entry("d", session::EntryType::leave),
                                      directory_entry("", session::EntryType::leave)};
  for (const size_t directory : {2u, 4u, 6u, 7u}) entries[directory].mode = mode;
  entries[1].mode = entries[3].mode = 0;
  rig.announce(entries);
  rig.source().put_pack({{1, "one"}, {3, "two"}, {5, "six"}});
  for (const uint64_t index : {uint64_t{1}, uint64_t{3}, uint64_t{5}}) REQUIRE(rig.run_until_result(index));
  rig.finish(entries.size());
  if (is_again) {
    listed.entries.clear();
    rig.again();
    rig.announce(entries);
    CHECK(rig.source().verdicts[3] == session::Verdict::unchanged);
    rig.finish(entries.size());
  }
  CHECK(mode_of(rig, "d") == mode);
  CHECK(::chmod(rig.temporary.path("d").c_str(), 0700) == 0);
  CHECK(mode_of(rig, "d/inner") == mode);
  CHECK(::chmod(rig.temporary.path("d/inner").c_str(), 0700) == 0);
  CHECK(listed.entries.size() == 5);
  CHECK(listed.unlisted == 0);
  for (const char* path : {"a", "d/f"}) {
    CHECK(listed.entries[path].size_bytes == 3);
    CHECK_FALSE(listed.entries[path].sha256.has_value());
  }
  CHECK(listed.entries["d/inner/f"].sha256.has_value());
  for (const char* path : {"d", "d/inner"}) CHECK(listed.entries[path].mode == mode);
}

}  // namespace ccixfer::recv
