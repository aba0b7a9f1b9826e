// The session of a second receiver: what it writes into the staged files of another receiver, and what it says of that.
#include "app/recv/second_receiver.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "app/recv/names.h"
#include "tests/unit/recv/destination_fixture.h"

using namespace ccixfer;
using namespace ccixfer::recv;
using namespace ccixfer::recv::test;
using Lock = ports::FileSystem::Lock;

namespace {

constexpr uint64_t piece = session::piece_bytes;

std::string content_of(uint64_t bytes, char first) {
  std::string content(bytes, '\0');
  for (uint64_t at = 0; at < bytes; ++at) content[at] = static_cast<char>(first + static_cast<char>(at % 61));
  return content;
}

// The receiver that owns the file is this: a directory, a staged file and its share.
struct Place {
  Place() {
    directory.write(".ccixfer/" + wanted.name, "");
    staging = files.open(ports::FileSystem::no_directory, directory.path(".ccixfer"), {.directory = true}, 0);
    shared = make_share(files, staging, wanted);
    REQUIRE(shared >= 0);
    session = std::make_unique<SessionWith<SecondReceiver>>(
        work,
        [this](session::Link& link, session::fake::Side& side, memory::Pool& pool, Notes&) {
          auto root = SecondRoot::open(files, directory.path());
          REQUIRE(root);
          return std::make_unique<SecondReceiver>(SecondReceiverParts{link, side.endpoint->mailboxes(), pool, work, side.entropy,
                                                                      std::make_shared<session::PoolTurns>(pool.count(), true),
                                                                      std::make_shared<RateAllowance>(0), *root});
        },
        1, 8);
  }
  ~Place() {
    session.reset();
    files.close(shared);
    files.close(staging);
  }
  void say(const session::Message& message) { session->source_link->post(message); }
  void open() {
    say(wanted);
    REQUIRE(session->run([&] { return !session->source.states.empty(); }));
    REQUIRE(session->source.states[0].is_open);
  }
  void put(uint64_t number, const std::string& data, Damage damage = Damage::none) {
    REQUIRE(session->run([&] { return session->source.has_credit(); }));
    session->source.put_piece(wanted.index, 5, number, as_bytes(data), damage);
  }
  [[nodiscard]] std::set<uint64_t> placed() const {
    std::set<uint64_t> pieces;
    for (const session::Placed& one : session->source.placed) {
      CHECK(one.index == wanted.index);
      for (uint64_t i = 0; i < one.hashes.size(); ++i) CHECK(pieces.insert(one.first + i).second);
    }
    return pieces;
  }
  [[nodiscard]] bool waits_for(std::set<uint64_t> pieces) {
    return session->run([&] { return placed() == pieces; });
  }
  [[nodiscard]] std::string staged() const { return directory.read(".ccixfer/" + wanted.name); }
  [[nodiscard]] const session::PlaceState& last_state() const { return session->source.states.back(); }
  [[nodiscard]] bool is_closed() {
    return session->run([&] { return !last_state().is_open; });
  }

  TemporaryDirectory directory;
  FaultyFiles files;
  InlinePool work{files};
  session::SharedPlace wanted{9, 2 * piece + 1000, {5, 6, 7}, staged_name(path_key("a"), 5)};
  int staging = -1, shared = -1;
  std::unique_ptr<SessionWith<SecondReceiver>> session;
};

}  // namespace

TEST_CASE("second_receiver__pieces__are_in_the_staged_file_and_durable_before_it_says_so") {
  Place at;
  at.open();
  size_t synced = 0;
  at.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "fsync") {
      CHECK(at.session->source.placed.size() <= 2 * synced);  // of the pieces before
      ++synced;
    }
    return 0;
  };
  const std::string first = content_of(piece, 'a'), last = content_of(1000, 'b');
  at.put(2, last);
  at.put(0, first);
  REQUIRE(at.waits_for({0, 2}));
  CHECK(synced > 0);
  CHECK(at.staged().substr(0, piece) == first);
  CHECK(at.staged().substr(2 * piece) == last);
  for (const session::Placed& one : at.session->source.placed) {
    if (one.first == 0) CHECK(one.hashes[0] == xxh3_128(as_bytes(first)));
  }
  CHECK(at.session->destination->bytes_placed() == piece + 1000);
  CHECK(end_share(at.files, at.staging, at.wanted.name,
                  at.files.open(at.staging, at.wanted.name, {.mode = ports::OpenMode::read_write}, 0)) == 0);
}

TEST_CASE("second_receiver__a_piece_that_comes_twice__is_written_once_and_may_come_again_later") {
  Place at;
  at.open();
  size_t writes = 0;
  at.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "pwrite") ++writes;
    return 0;
  };
  at.put(2, content_of(1000, 'b'));
  at.put(2, content_of(1000, 'b'));  // as when a lane was lost that had brought it
  REQUIRE(at.waits_for({2}));
  at.session->settle();
  CHECK(writes == 1);
  at.session->source.placed.clear();
  at.put(2, content_of(1000, 'b'));  // the owner wants it once more: its own sync failed
  CHECK(at.waits_for({2}));
}

TEST_CASE("second_receiver__a_place_that_is_closed__lets_go_of_the_lock_though_pieces_wait_for_their_sync") {
  Place at;
  at.open();
  at.files.hook = [](std::string_view call, std::string_view) { return call == "fsync" ? -EIO : 0; };
  at.put(1, content_of(piece, 'b'));
  at.put(2, content_of(1000, 'b'));
  REQUIRE(at.is_closed());
  at.session->settle();
  at.files.hook = nullptr;
  const int owner = at.files.open(at.staging, at.wanted.name, {.mode = ports::OpenMode::read_write}, 0);
  CHECK(at.files.lock(owner, Lock::alone) == 0);
  at.files.close(owner);
}

TEST_CASE("second_receiver__a_damaged_piece__is_not_written_at_all_and_asked_for_again") {
  Place at;
  at.open();
  at.files.hook = [](std::string_view call, std::string_view) {
    CHECK(call != "pwrite");
    return 0;
  };
  at.put(2, content_of(1000, 'b'), Damage::data);
  REQUIRE(at.session->run([&] { return !at.session->source.resends.empty(); }));
  CHECK(at.session->source.resends[0].index == at.wanted.index);
  CHECK(at.session->source.resends[0].piece == 2);
  at.files.hook = nullptr;
  at.put(2, content_of(1000, 'b'));
  CHECK(at.waits_for({2}));
}

TEST_CASE("second_receiver__a_damaged_trailer__is_asked_for_by_its_put") {
  Place at;
  at.open();
  at.put(2, content_of(1000, 'b'), Damage::trailer);
  REQUIRE(at.session->run([&] { return !at.session->source.resends.empty(); }));
  CHECK(at.session->source.resends[0].index == session::Resend::by_segment);
  CHECK(at.placed().empty());
}

TEST_CASE("second_receiver__nothing_but_damage__ends_the_session") {
  Place at;
  at.open();
  for (uint32_t i = 0; i <= damaged_segments_max && !at.session->source.aborted; ++i) {
    at.put(2, content_of(1000, 'b'), Damage::data);
    REQUIRE(at.session->run([&] { return at.session->source.aborted || at.session->source.resends.size() == i + 1; }));
  }
  REQUIRE(at.session->source.aborted);
  CHECK(at.session->source.aborted->kind == ErrorKind::protocol);
}

TEST_CASE("second_receiver__a_place_that_is_not_here__is_refused_with_the_reason") {
  Place at;
  session::SharedPlace other = at.wanted;
  other.name = staged_name(path_key("b"), 1);
  at.say(other);
  REQUIRE(at.session->run([&] { return !at.session->source.states.empty(); }));
  CHECK_FALSE(at.last_state().is_open);
  CHECK(at.last_state().reason.find("another directory") != std::string::npos);
  // Pieces that were on their way are passed over.
  at.put(2, content_of(1000, 'b'));
  at.session->settle();
  CHECK(at.placed().empty());
  CHECK_FALSE(at.session->source.aborted);
}

TEST_CASE("second_receiver__another_token__is_refused") {
  Place at;
  at.wanted.token[0] = 99;
  at.say(at.wanted);
  REQUIRE(at.session->run([&] { return !at.session->source.states.empty(); }));
  CHECK(at.last_state().reason.find("does not share") != std::string::npos);
}

TEST_CASE("second_receiver__no_space__closes_the_place") {
  Place at;
  at.open();
  at.files.hook = [](std::string_view call, std::string_view) { return call == "pwrite" ? -ENOSPC : 0; };
  at.put(2, content_of(1000, 'b'));
  REQUIRE(at.is_closed());
  CHECK(at.last_state().reason == "No space left on device");
  CHECK(at.placed().empty());
  CHECK_FALSE(at.session->source.aborted);
}

TEST_CASE("second_receiver__a_sync_that_fails__closes_the_place_and_nothing_of_it_is_placed") {
  Place at;
  at.open();
  at.files.hook = [](std::string_view call, std::string_view) { return call == "fsync" ? -EIO : 0; };
  at.put(1, content_of(piece, 'b'));
  at.put(2, content_of(1000, 'b'));
  REQUIRE(at.is_closed());
  at.session->settle();
  CHECK(at.placed().empty());
}

TEST_CASE("second_receiver__the_owner_has_ended_the_share__nothing_more_is_written") {
  Place at;
  at.open();
  at.put(2, content_of(1000, 'b'));
  REQUIRE(at.waits_for({2}));
  const int owner = at.files.open(at.staging, at.wanted.name, {.mode = ports::OpenMode::read_write}, 0);
  REQUIRE(end_share(at.files, at.staging, at.wanted.name, owner) == 0);
  at.files.close(owner);
  at.files.hook = [](std::string_view call, std::string_view) {
    CHECK(call != "pwrite");
    return 0;
  };
  at.put(1, content_of(piece, 'b'));
  REQUIRE(at.is_closed());
  CHECK(at.placed() == std::set<uint64_t>{2});
}

TEST_CASE("second_receiver__while_it_syncs__the_owner_cannot_commit") {
  Place at;
  at.open();
  const int owner = at.files.open(at.staging, at.wanted.name, {.mode = ports::OpenMode::read_write}, 0);
  int seen = 0;
  at.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "fsync" || call == "pwrite") {
      const auto hook = std::exchange(at.files.hook, nullptr);
      seen = at.files.lock(owner, Lock::alone);
      at.files.hook = hook;
    }
    return 0;
  };
  at.put(2, content_of(1000, 'b'));
  REQUIRE(at.waits_for({2}));
  CHECK(seen == -EAGAIN);
  at.files.hook = nullptr;
  CHECK(at.files.lock(owner, Lock::alone) == 0);
  at.files.close(owner);
}

TEST_CASE("second_receiver__what_makes_no_sense__ends_the_session") {
  Place at;
  SECTION("a message for the owner") { at.say(session::FileEnd{}); }
  SECTION("a place of nothing") {
    at.wanted.size_bytes = 0;
    at.say(at.wanted);
  }
  SECTION("a place twice") {
    at.say(at.wanted);
    at.say(at.wanted);
  }
  SECTION("a piece behind the end") {
    at.open();
    at.put(3, content_of(1000, 'b'));
  }
  SECTION("a piece of another length") {
    at.open();
    at.put(2, content_of(999, 'b'));
  }
  SECTION("a pack") {
    REQUIRE(at.session->run([&] { return at.session->source.has_credit(); }));
    at.session->source.put_pack({{0, "abc"}});
  }
  REQUIRE(at.session->run([&] { return at.session->source.aborted != nullptr; }));
  CHECK(at.session->source.aborted->kind == ErrorKind::protocol);
  CHECK(at.session->run([&] { return at.session->destination->finished(); }));
}

TEST_CASE("second_receiver__too_many_places__are_refused_and_those_that_ended_do_not_count") {
  Place at;
  for (uint64_t i = 0; i < places_open_max + 5; ++i) {
    session::SharedPlace one = at.wanted;
    one.index = 100 + i;
    at.say(one);
    if (i >= places_open_max - 1) continue;
    at.say(session::PlaceEnded{one.index});
  }
  REQUIRE(at.session->run([&] { return at.session->source.states.size() == places_open_max + 5; }));
  for (const session::PlaceState& state : at.session->source.states) CHECK(state.is_open);
  for (uint64_t i = 0; i < places_open_max; ++i) {
    session::SharedPlace one = at.wanted;
    one.index = 1000 + i;
    at.say(one);
  }
  REQUIRE(at.session->run([&] { return at.session->source.states.size() == 2 * places_open_max + 5; }));
  const std::vector<session::PlaceState>& states = at.session->source.states;
  CHECK(std::count_if(states.begin(), states.end(), [](const session::PlaceState& state) {
          return !state.is_open && state.reason == "too many files are open";
        }) == 6);
}

TEST_CASE("second_receiver__goodbye__ends_it_well_and_leaves_no_descriptor") {
  Place at;
  at.open();
  at.put(2, content_of(1000, 'b'));
  REQUIRE(at.waits_for({2}));
  at.say(session::PlaceEnded{at.wanted.index});
  at.say(session::Bye{});
  REQUIRE(at.session->run([&] { return at.session->destination->finished(); }));
  CHECK(at.session->destination->error() == nullptr);
  CHECK(at.session->run([&] { return at.session->destination->idle(); }));
}
