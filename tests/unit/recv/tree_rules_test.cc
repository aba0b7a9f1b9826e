// What is done to names, modes and copies around the data: each case fails when that step is left out.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "app/recv/opened_root.h"
#include "tests/unit/recv/destination_fixture.h"
#include "tests/unit/recv/not_root.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;

struct Rig {
  explicit Rig(uint32_t options = archive)
      : root(Root::open(files, temporary.path()).value()),
        work(files),
        session(std::make_unique<Session>(*root, work, DestinationOptions{options, "", 0, 0})) {}
  ~Rig() {
    files.hook = nullptr;
    session.reset();
  }
  [[nodiscard]] ScriptedSource& source() const { return session->source; }
  void announce(const std::vector<session::Entry>& entries) {
    source().put_entries(entries, announced, sequence++);
    announced += entries.size();
    REQUIRE(session->run([&] { return source().verdicts.size() == announced; }));
  }
  ErrorKind result_of(uint64_t index) {
    REQUIRE(session->run([&] { return source().results.contains(index); }));
    return source().results[index].kind;
  }
  void finish() {
    session->source_link->post(session::End{announced});
    REQUIRE(session->run([&] { return source().summary != nullptr; }));
    session->source_link->post(session::Bye{});
    REQUIRE(session->run([&] { return session->destination->finished() && session->destination->idle(); }));
  }
  [[nodiscard]] uint32_t mode_of(const std::string& name) const {
    struct stat stat {};
    REQUIRE(::lstat(temporary.path(name).c_str(), &stat) == 0);
    return stat.st_mode & 07777u;
  }

  TemporaryDirectory temporary;
  FaultyFiles files;
  std::unique_ptr<Root> root;
  InlinePool work;
  std::unique_ptr<Session> session;
  uint64_t announced = 0;
  uint64_t sequence = 0;
};

constexpr uint32_t without_modes = archive & ~session::option_permissions;

}  // namespace

TEST_CASE("destination__read_only_directory_with_its_own_mode__is_read_only_at_the_end") {
  const NotRoot account;
  for (const uint32_t options : {without_modes, archive}) {
    CAPTURE(options);
    Rig rig(options);
    rig.temporary.write("d/old", "old");
    REQUIRE(::chmod(rig.temporary.path("d").c_str(), 0555) == 0);
    session::Entry last = directory_entry("d", session::EntryType::leave);
    rig.announce({directory_entry("d"), file_entry("d/f", 3), last});
    CHECK((rig.mode_of("d") & 0700u) == 0700u);  // for the time
    rig.source().put_pack({{1, "abc"}});
    CHECK(rig.result_of(1) == ErrorKind::ok);
    rig.finish();
    CHECK(rig.temporary.read("d/f") == "abc");
    CHECK(rig.mode_of("d") == (options == archive ? 0755u : 0555u));
  }
}

TEST_CASE("destination__large_file_with_a_promised_digest__delivered_only_if_it_agrees") {
  for (const bool as_promised : {true, false}) {
    CAPTURE(as_promised);
    Rig rig(archive | session::option_checksum);
    const std::vector<std::byte> data(static_cast<size_t>(piece + 100), std::byte{7});
    session::Entry entry = file_entry("f", data.size());
    entry.has_digest = true;
    entry.digest = session::file_digest({xxh3_128(Bytes(data).first(piece)), xxh3_128(Bytes(data).subspan(piece))});
    if (!as_promised) entry.digest.high ^= 1;
    rig.announce({entry});
    rig.source().put_piece(0, 5, 0, Bytes(data).first(piece));
    REQUIRE(rig.session->run([&] { return rig.source().has_credit(); }));
    rig.source().put_piece(0, 5, 1, Bytes(data).subspan(piece));
    session::FileEnd end;
    end.index = 0;
    end.outcome = session::SourceOutcome::ok;
    rig.session->source_link->post(end);
    CHECK(rig.result_of(0) == (as_promised ? ErrorKind::ok : ErrorKind::integrity));
    CHECK(rig.temporary.has("f") == as_promised);
    rig.finish();
  }
}

TEST_CASE("destination__target_on_another_file_system__the_copy_is_synced_before_its_name") {
  for (const bool sync_fails : {false, true}) {
    CAPTURE(sync_fails);
    Rig rig;
    rig.temporary.write("f", "old");
    std::vector<std::string> calls;
    bool across = false;
    rig.files.hook = [&](std::string_view call, std::string_view name) {
      if (call == "rename_at" && name == "f" && !across) {
        across = true;
        return -EXDEV;
      }
      if (across && call == "fsync" && sync_fails) return -EIO;
      if (across) calls.emplace_back(call);
      return 0;
    };
    rig.announce({file_entry("f", 5)});
    rig.source().put_pack({{0, "newer"}});
    if (sync_fails) {
      REQUIRE(rig.session->run([&] { return across && rig.session->destination->idle(); }));
      rig.session->settle();
      CHECK(rig.temporary.read("f") == "old");
      continue;
    }
    CHECK(rig.result_of(0) == ErrorKind::ok);
    const auto wrote = std::find(calls.begin(), calls.end(), "pwrite");
    const auto renamed = std::find(calls.begin(), calls.end(), "rename_at");
    REQUIRE(wrote < renamed);
    REQUIRE(renamed != calls.end());
    CHECK(std::find(wrote, renamed, "fsync") != renamed);
    CHECK(std::find(renamed, calls.end(), "fsync") != calls.end());  // and the name itself, as the root's sync does not cover it
    CHECK(rig.temporary.read("f") == "newer");
    rig.finish();
  }
}

}  // namespace ccixfer::recv
