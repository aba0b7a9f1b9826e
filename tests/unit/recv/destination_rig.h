// A root with one session below it, and what most tests of the destination do with it.
#pragma once
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/recv/opened_root.h"
#include "app/recv/root.h"
#include "tests/unit/recv/destination_fixture.h"

namespace ccixfer::recv::test {

inline constexpr uint64_t piece = session::piece_bytes;

struct Rig {
  explicit Rig(const DestinationOptions& options_ = {.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0},
               uint16_t lanes = 1, const std::string& below = "", size_t descriptors = 1024, const char* vfs = nullptr)
      : root(Root::open(with(files, descriptors), made(below), vfs).value()),
        work(files),
        options(options_),
        session(std::make_unique<Session>(*root, work, options, lanes)) {}
  ~Rig() {
    files.hook = nullptr;
    session.reset();
  }
  // Another session below the same root.
  void again() {
    session.reset();
    session = std::make_unique<Session>(*root, work, options);
    announced = sequence = 0;
  }
  [[nodiscard]] ScriptedSource& source() const { return session->source; }
  void finish(uint64_t entries) {
    session->source_link->post(session::End{entries});
    REQUIRE(session->run([&] { return source().summary != nullptr; }));
    session->source_link->post(session::Bye{});
    REQUIRE(session->run([&] { return session->destination->finished() && session->destination->idle(); }));
    CHECK(session->destination->error() == nullptr);
    CHECK(session->pool.free_count() == session->pool.count());
  }
  bool run_until_result(uint64_t index) {
    return session->run([&] { return source().results.contains(index); });
  }
  void announce(const std::vector<session::Entry>& entries) {
    source().put_entries(entries, announced, sequence++);
    announced += entries.size();
    REQUIRE(session->run([&] { return source().verdicts.size() == announced; }));
  }
  void put_piece(uint64_t index, uint64_t number, Bytes data, Damage damage = Damage::none) {
    REQUIRE(session->run([&] { return source().has_credit(); }));
    source().put_piece(index, 5, number, data, damage);
  }

  static FaultyFiles& with(FaultyFiles& files, size_t descriptors) {
    files.descriptors = descriptors;
    return files;
  }
  // The root's path: the temporary directory, or one in it.
  [[nodiscard]] std::string made(const std::string& below) const {
    if (!below.empty()) std::filesystem::create_directory(temporary.path(below));
    return temporary.path(below);
  }

  TemporaryDirectory temporary;
  FaultyFiles files;
  std::unique_ptr<Root> root;
  InlinePool work;
  const DestinationOptions options;
  std::unique_ptr<Session> session;
  uint64_t announced = 0;
  uint64_t sequence = 0;
};

inline std::vector<std::byte> pattern(uint64_t size_bytes, uint8_t seed) {
  std::vector<std::byte> data(static_cast<size_t>(size_bytes));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 31 + i / 4096 + seed);
  return data;
}

inline session::FileEnd end_of(uint64_t index, session::SourceOutcome outcome = session::SourceOutcome::ok) {
  session::FileEnd end;
  end.index = index;
  end.outcome = outcome;
  return end;
}

}  // namespace ccixfer::recv::test
