// Each call that a database makes of its file system fails once, or from then on: what was acknowledged is there afterwards.
#include <catch2/catch.hpp>
#include <map>

#include "app/recv/deliveries.h"
#include "app/recv/ledger.h"
#include "app/recv/names.h"
#include "tests/unit/recv/faulty_files.h"
#include "tests/unit/recv/faulty_vfs.h"

namespace ccixfer::recv {

using test::FaultyFiles;
using test::FaultyVfs;
using test::TemporaryDirectory;

namespace {

const Ledger::File file_a{path_key("a"), 7};
const Ledger::File file_b{path_key("b"), 1};
const Ledger::File file_c{path_key("c"), 2};

// The place of a database, and the call whose number is `at` (from 1; 0: none) that fails; the later ones too if it lasts.
struct Place {
  explicit Place(bool lasts_ = false) : lasts(lasts_) {
    directory = files.open(ports::FileSystem::no_directory, temporary.path(), {.directory = true}, 0);
    vfs.hook = [this](std::string_view call) {
      ++calls;
      if (call == "open") ++opens;
      const bool now = at != 0 && (calls == at || (lasts && calls > at));
      if (now) ++faults;
      return now ? code : SQLITE_OK;
    };
  }
  ~Place() { files.close(directory); }
  auto ledger() { return Ledger::open(files, directory, temporary.path(), FaultyVfs::name); }
  auto deliveries() { return Deliveries::open(files, directory, temporary.path(), FaultyVfs::name); }
  void fail_at(uint64_t number) {
    at = number;
    calls = 0;
    faults = 0;
    opens = 0;
  }
  TemporaryDirectory temporary;
  FaultyFiles files;
  FaultyVfs vfs;
  int directory;
  const bool lasts;
  uint64_t at = 0, calls = 0, faults = 0, opens = 0;
  int code = SQLITE_IOERR;
};

std::map<uint64_t, Hash128> pieces_of(Ledger& ledger, const Ledger::File& file) {
  std::map<uint64_t, Hash128> found;
  const auto pieces = ledger.pieces(file).value();
  for (const Ledger::Piece& piece : pieces) found[piece.number] = piece.hash;
  return found;
}

using Pieces = std::map<uint64_t, Hash128>;
const Pieces of_a{{1, {3, 4}}, {3, {1, 2}}};

}  // namespace

TEST_CASE("ledger_faults__a_failure_that_passes__is_survived_by_whatever_was_asked") {
  for (uint64_t number = 1;; ++number) {
    INFO("call " << number << " fails");
    Place place;
    auto ledger = place.ledger().value();
    REQUIRE(ledger->add({{file_a, "a", {{3, {1, 2}}}}, {file_b, "b", {{0, {5, 6}}}}}));
    place.fail_at(number);
    CHECK(ledger->add({{file_a, "a", {{1, {3, 4}}}}, {file_c, "c", {{9, {9, 9}}}}}));
    CHECK(pieces_of(*ledger, file_a) == of_a);
    CHECK(ledger->remove({file_b}));
    CHECK(ledger->versions(file_c.key).value() == std::vector<uint64_t>{2});
    CHECK(ledger->versions(file_b.key).value().empty());
    const bool hit = place.faults > 0;
    place.fail_at(0);
    ledger.reset();
    ledger = place.ledger().value();
    CHECK(pieces_of(*ledger, file_a) == of_a);
    CHECK(pieces_of(*ledger, file_c) == Pieces{{9, {9, 9}}});
    CHECK(ledger->all().value().size() == 2);
    CHECK_FALSE(ledger->moved_aside());
    if (!hit) {
      CHECK(number > 5);  // there were calls to fail
      break;
    }
  }
}

// SQLite has no code of its own for them.
TEST_CASE("ledger_faults__a_quota_is_full_or_the_disk_says_at_a_sync_that_it_is__no_space") {
  const std::string_view failing = GENERATE(as<std::string_view>(), "write", "sync", "open");
  const int error = GENERATE(EDQUOT, ENOSPC, EIO);
  INFO(failing << ", " << error);
  Place place;
  auto ledger = place.ledger();
  REQUIRE(ledger);
  if (failing == "open") ledger->reset();
  place.vfs.hook = [&](std::string_view call) {
    if (call != failing) return SQLITE_OK;
    errno = place.vfs.last_errno = error;
    return call == "write" ? SQLITE_IOERR_WRITE : call == "sync" ? SQLITE_IOERR_FSYNC : SQLITE_CANTOPEN;
  };
  const auto result = failing == "open" ? Result<void>(tl::unexpected<Error>(place.ledger().error()))
                                        : (*ledger)->add({{file_a, "a", {{3, {1, 2}}}}});
  place.vfs.hook = nullptr;
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == (error == EIO ? ErrorKind::file_io : ErrorKind::no_space));
}

// To SQLite's own check of a database a page that could not be read is a damaged one: it is not taken at its first word.
TEST_CASE("ledger_faults__at_the_opening__survived_if_passing_else_said_and_nothing_lost") {
  for (const bool lasts : {false, true}) {
    for (uint64_t number = 1;; ++number) {
      INFO("call " << number << (lasts ? " and all later ones fail" : " fails"));
      Place place(lasts);
      REQUIRE(place.ledger().value()->add({{file_a, "a", {{3, {1, 2}}, {1, {3, 4}}}}}));
      place.fail_at(number);
      bool moved_aside = false;
      {
        const auto opened = place.ledger();
        if (!lasts) REQUIRE(opened);
        if (opened) moved_aside = (*opened)->moved_aside();
        if (!lasts) CHECK_FALSE(moved_aside);
        if (!opened) {
          CHECK(opened.error().kind == ErrorKind::file_io);
          CHECK(opened.error().message.rfind("the ledger fails to open (", 0) == 0);
          CHECK(opened.error().message.find(": check the directory and its disk") != std::string::npos);
        }
      }
      const bool hit = place.faults > 0;
      place.fail_at(0);
      auto ledger = place.ledger().value();
      if (!moved_aside) CHECK(pieces_of(*ledger, file_a) == (lasts && ledger->empty() ? Pieces{} : of_a));
      if (!hit) {
        CHECK(number > 5);
        CHECK(pieces_of(*ledger, file_a) == of_a);
        break;
      }
    }
  }
}

TEST_CASE("ledger_faults__failure_that_stays__is_said_and_acknowledged_rows_are_kept") {
  for (const int code : {SQLITE_IOERR, SQLITE_FULL}) {
    for (uint64_t number = 1;; ++number) {
      INFO("from call " << number << " on, code " << code);
      Place place(true);
      place.code = code;
      auto ledger = place.ledger().value();
      REQUIRE(ledger->add({{file_a, "a", {{3, {1, 2}}, {1, {3, 4}}}}, {file_b, "b", {{0, {5, 6}}}}}));
      place.fail_at(number);
      const auto added = ledger->add({{file_c, "c", {{9, {9, 9}}}}});
      const auto removed = ledger->remove({file_b});
      const auto read = ledger->pieces(file_a);
      const auto versions = ledger->versions(file_a.key);
      const auto all = ledger->all();
      const bool hit = place.faults > 0;
      for (const Error* error :
           {added ? nullptr : &added.error(), removed ? nullptr : &removed.error(), read ? nullptr : &read.error(),
            versions ? nullptr : &versions.error(), all ? nullptr : &all.error()}) {
        if (error == nullptr) continue;
        CHECK(error->kind == (code == SQLITE_FULL ? ErrorKind::no_space : ErrorKind::file_io));
      }
      if (read) CHECK(read->size() == 2);
      place.fail_at(0);
      CHECK(pieces_of(*ledger, file_a) == of_a);  // the same one goes on when the disk does
      ledger.reset();
      ledger = place.ledger().value();
      CHECK(pieces_of(*ledger, file_a) == of_a);
      if (added) CHECK(pieces_of(*ledger, file_c) == Pieces{{9, {9, 9}}});
      if (removed) CHECK(ledger->versions(file_b.key).value().empty());
      if (!added && !removed) CHECK_FALSE(ledger->versions(file_b.key).value().empty());
      CHECK_FALSE(ledger->moved_aside());
      if (!hit) {
        CHECK(added);
        CHECK(removed);
        break;
      }
    }
  }
}

// What does not fit into SQLite's memory is read when it is asked for.
TEST_CASE("ledger_faults__a_read_fails_when_pieces_are_asked_for__read_again_once_else_said") {
  for (const bool lasts : {false, true}) {
    Place place(lasts);
    Ledger::Addition large{file_a, "a", {}};
    for (uint64_t number = 0; number < 120'000; ++number) large.pieces.push_back({number, {number, ~number}});
    REQUIRE(place.ledger().value()->add({large, {file_b, "b", {{0, {5, 6}}}}}));
    auto ledger = place.ledger().value();
    place.fail_at(1);
    const auto read = ledger->pieces(file_a);
    CHECK(place.faults > 0);
    if (lasts) {
      REQUIRE_FALSE(read);
      CHECK(read.error().kind == ErrorKind::file_io);
      CHECK(read.error().message.rfind("the ledger fails to ", 0) == 0);
    } else {
      REQUIRE(read);
      REQUIRE(read->size() == large.pieces.size());
      CHECK(read->back().number == large.pieces.back().number);
      CHECK(read->back().hash == large.pieces.back().hash);
      CHECK(place.opens > 0);  // anew: what SQLite holds may be something else than what is on the disk
    }
    place.fail_at(0);
    CHECK(ledger->pieces(file_a).value().size() == large.pieces.size());
  }
}

TEST_CASE("ledger_faults__nothing_to_add_or_remove__touches_no_disk") {
  Place place(true);
  auto ledger = place.ledger().value();
  place.fail_at(1);
  CHECK(ledger->add({}));
  CHECK(ledger->remove({}));
  CHECK(ledger->remove({file_a}));
  CHECK(ledger->pieces(file_a).value().empty());
  CHECK(place.faults == 0);
}

TEST_CASE("delivery_faults__any_failure__costs_memory_of_what_was_placed_and_never_truth") {
  const Deliveries::Transfer transfer{1}, other{2};
  const Deliveries::File a{path_key("a"), 7, {5, {100, 1}, 11}}, b{path_key("b"), 8, {6, {100, 2}, 12}};
  for (const bool lasts : {false, true}) {
    for (uint64_t number = 1;; ++number) {
      INFO("call " << number << (lasts ? " and all later ones fail" : " fails"));
      Place place(lasts);
      place.deliveries()->add(transfer, 1000, {a});
      place.fail_at(number);
      {
        auto deliveries = place.deliveries();
        if (deliveries) {
          deliveries->add(other, 1000, {b});
          for (const Deliveries::File& file : {a, b}) {
            const auto found = deliveries->find(file.key, file.version);
            if (found) CHECK(found->placed == file.placed);
          }
          deliveries->forget(transfer, {});
          CHECK_FALSE(deliveries->find(a.key, a.version));
        }
      }
      const bool hit = place.faults > 0;
      place.fail_at(0);
      auto deliveries = place.deliveries();
      REQUIRE(deliveries);
      const auto found = deliveries->find(b.key, b.version);
      if (found) CHECK(found->placed == b.placed);
      if (!hit) {
        CHECK(number > 5);
        CHECK(found);
        CHECK_FALSE(deliveries->find(a.key, a.version));
        break;
      }
    }
  }
}

}  // namespace ccixfer::recv
