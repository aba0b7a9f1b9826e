// Power cuts at each call of a transfer that changes a large file of which the destination has an older version: staged, and in
// place. What was reported stays; staged, the name shows the old file or the new one; and the next run finishes.
#include <catch2/catch.hpp>
#include <set>

#include "app/recv/opened_root.h"
#include "tests/unit/recv/destination_rig.h"
#include "transports/sim/sim_file_system.h"
#include "transports/sim/sim_sqlite_vfs.h"
#include "transports/sim/world.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

std::string text_of(const std::vector<std::byte>& data) { return {reinterpret_cast<const char*>(data.data()), data.size()}; }

Bytes part_of(const std::vector<std::byte>& data, uint64_t number) {
  return Bytes(data).subspan(number * piece, std::min<size_t>(piece, data.size() - number * piece));
}

// The source's side of one run. True: the file has arrived.
bool run(Session& session, const std::vector<std::byte>& data, const bool& frozen) {
  ScriptedSource& source = session.source;
  const auto over = [&] { return frozen || source.aborted != nullptr || source.results.contains(0); };
  source.put_entries({file_entry("f", data.size())}, 0, 0);
  session.run([&] { return over() || source.verdicts.size() == 1; });
  if (over() || source.verdicts[0] == Verdict::unchanged) return !over();
  std::set<uint64_t> answered;
  const auto answer = [&](uint64_t number, bool same) {
    if (same) {
      session.source_link->post(session::Same{0, {{number, 1}}});
    } else if (session.run([&] { return over() || source.has_credit(); }) && !over()) {
      source.put_piece(0, 5, number, part_of(data, number));
    }
    session.settle(40);
    session.now += std::chrono::milliseconds(300);  // a sync of what is written
    session.settle(40);
  };
  session.source_link->post(end_of(0));
  while (!over()) {
    session.settle(40);
    for (const session::Want::Range& range :
         source.verdicts[0] == Verdict::pieces ? source.wants[0] : std::vector<session::Want::Range>{})
      for (uint64_t number = range.first; number < range.first + range.count; ++number)
        if (answered.insert(number).second && !over()) answer(number, false);
    if (source.verdicts[0] == Verdict::send && answered.insert(99).second)
      for (uint64_t number = 0; number < 3 && !over(); ++number) answer(number, false);
    for (const session::Compare& compare : std::vector<session::Compare>(source.compares))
      for (uint64_t at = 0; at < compare.count && !over(); ++at) {
        const uint64_t number = compare.first + at;
        const bool same = !compare.hashes.empty() && compare.hashes[at] == xxh3_128(part_of(data, number));
        if (answered.insert(number).second) answer(number, same);
      }
  }
  if (!source.results.contains(0)) return false;
  session.source_link->post(session::End{1});
  session.run([&] { return frozen || source.aborted != nullptr || source.summary != nullptr; });
  return source.summary != nullptr;
}

}  // namespace

TEST_CASE("destination__power_cut_while_a_file_changes__old_or_new_and_the_next_run_ends") {
  const bool in_place = GENERATE(false, true);
  const auto old = test::pattern(2 * piece + 700, 1);
  auto data = old;
  data[piece + 1] ^= std::byte{1};
  data.resize(2 * piece + 500);
  const uint32_t options = archive | (in_place ? session::option_inplace : 0u);
  bool finished = false;
  for (uint64_t cut_at = 3; !finished; ++cut_at) {
    INFO((in_place ? "in place, " : "") << "cut before call " << cut_at);
    sim::World world(cut_at);
    const sim::NodeId node = world.add_node("receiver");
    sim::SimFileSystem files(world, node);
    files.make_directory("/root");
    files.put("/root/f", text_of(old));
    sim::SimSqliteVfs vfs(world, files);
    bool frozen = false;
    bool told = false;
    const auto attempt = [&] {
      auto root = Root::open(files, "/root", vfs.name());
      if (!root) return false;
      InlinePool work(files);
      DestinationOptions with;
      with.options = options;
      Session session(**root, work, with);
      const bool ended = run(session, data, frozen);
      told = told || (session.source.results.contains(0) && session.source.results[0].kind == ErrorKind::ok);
      return ended;
    };
    files.freeze_after(cut_at, [&] { frozen = true; });
    finished = attempt() && !frozen;
    files.crash();
    files.mount();
    frozen = false;
    const std::string there = files.get("/root/f").value_or("");
    if (told) REQUIRE((there == text_of(data)));
    if (!in_place) REQUIRE((there == text_of(old) || there == text_of(data)));
    REQUIRE(attempt());
    REQUIRE((files.get("/root/f") == text_of(data)));
  }
}

}  // namespace ccixfer::recv
