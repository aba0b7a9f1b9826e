// A pull from several sources: of two that have one name the first one's counts.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

Entry leave(const std::string& path) {
  Entry entry = directory(path);
  entry.type = EntryType::leave;
  return entry;
}

struct Sources : Place {
  explicit Sources(uint32_t more = 0) : Place(archive_options | session::option_itemize | more) { begin(); }
  void begin() {
    earlier->next_source();
    one = std::make_unique<EntryDecider>(*root->opened(), *directories, policy, "", owner, linked);
    one->set_earlier(earlier);
  }
  std::vector<Decision> look(const std::vector<Entry>& entries) {
    DecidedEntries decided = one->decide(entries, 0);
    REQUIRE_FALSE(decided.fatal.has_value());
    root->opened()->claims.release_all(owner);
    return std::move(decided.decisions);
  }
  const std::shared_ptr<EarlierSources> earlier = std::make_shared<EarlierSources>();
  std::unique_ptr<EntryDecider> one;
};

}  // namespace

TEST_CASE("earlier_sources__a_name_of_two_sources__is_that_of_the_first") {
  for (const uint32_t mode : {0u, uint32_t{session::option_dry_run}}) {
    Sources sources(mode);
    const std::vector<Entry> of_first{directory("d"), file("d/f", 4), link("d/l", "first"), leave("d")};
    CHECK(sources.look(of_first).at(1).verdict == Verdict::send);
    CHECK(sources.look(of_first).at(1).verdict == Verdict::send);  // another session of the same source
    sources.begin();
    const auto of_second = sources.look({directory("d"), file("d/f", 5), file("d/g", 5), link("d/l", "second"), leave("d")});
    CHECK(of_second.at(0).verdict == Verdict::done);
    CHECK(of_second.at(0).items == 0);
    CHECK((of_second.at(1).verdict == Verdict::unchanged && of_second.at(1).stays));
    CHECK(of_second.at(2).verdict == Verdict::send);
    CHECK((of_second.at(3).verdict == Verdict::done && of_second.at(3).stays));
    if (mode == 0) CHECK(std::filesystem::read_symlink(sources.temporary.path("d/l")) == "first");
    sources.begin();
    CHECK(sources.look({directory("d"), file("d/g", 6)}).at(1).verdict == Verdict::unchanged);
  }
}

TEST_CASE("earlier_sources__a_directory_of_two_sources__keeps_what_it_has_from_the_first") {
  Sources sources;
  std::filesystem::create_directory(sources.temporary.path("d"));
  REQUIRE(::chmod(sources.temporary.path("d").c_str(), 0711) == 0);
  sources.look({directory("d", 0711), leave("d")});
  sources.begin();
  for (const char* path : {"d", ""}) {
    const std::vector<Decision> decided = sources.look({directory(path, 0755), leave(path)});
    REQUIRE(decided.at(1).leave.has_value());
    const bool is_known = *path != 0;
    CHECK(decided.at(1).leave->attributes.mode == (is_known ? 0711u : 0755u));
    CHECK((decided.at(0).items == 0) == is_known);
    CHECK((decided.at(1).leave->attributes.mtime == file("", 0).mtime) == !is_known);
  }
  sources.begin();  // the one before it gave the root what it has
  CHECK(sources.look({directory("", 0751), leave("")}).at(1).leave->attributes.mode != 0751u);
}

TEST_CASE("earlier_sources__a_first_name_that_stays__is_not_linked_to") {
  Sources sources;
  sources.look({file("a", 4)});
  sources.begin();
  Entry first = file("a", 5), further = file("b", 5);
  first.is_linked = further.is_linked = true;
  further.linked_to = "a";
  CHECK(sources.look({first}).at(0).verdict == Verdict::unchanged);
  CHECK(sources.look({further}).at(0).verdict == Verdict::send);
}

TEST_CASE("earlier_sources__what_failed__is_brought_by_the_next_one") {
  Sources sources;
  sources.temporary.write("d/x", "");
  CHECK(sources.look({file("d", 4)}).at(0).verdict == Verdict::failed);
  sources.begin();
  std::filesystem::remove_all(sources.temporary.path("d"));
  CHECK(sources.look({file("d", 5)}).at(0).verdict == Verdict::send);
}

}  // namespace ccixfer::recv
