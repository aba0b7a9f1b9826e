// Power cuts at many instants of a transfer, on a disk that loses what was not synced: what was reported stays, the old file stays
// whole until the new one is, no name shows other bytes, and the next run finishes.
#include <catch2/catch.hpp>

#include "app/recv/opened_root.h"
#include "tests/unit/recv/destination_fixture.h"
#include "transports/sim/sim_file_system.h"
#include "transports/sim/sim_sqlite_vfs.h"
#include "transports/sim/world.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;
constexpr ports::FileTime listed_mtime = {1'000'000'000, 123'456'789};

std::string text(size_t size_bytes, char seed) {
  std::string content(size_bytes, seed);
  for (size_t i = 0; i < content.size(); i += 997) content[i] = static_cast<char>(seed + static_cast<char>(i % 13));
  return content;
}

// The source's side of one run: everything that is asked for is sent, until the disk freezes.
class Transfer {
 public:
  Transfer() {
    contents_["d/small"] = text(3000, 'a');
    contents_["d/replaced"] = text(5000, 'b');
    contents_["e/f/big"] = text(2 * piece + 500, 'c');
    contents_["empty"] = "";
  }
  [[nodiscard]] const std::map<std::string, std::string>& contents() const { return contents_; }

  // True: the summary came.
  bool run(Session& session, const bool& frozen) {
    ScriptedSource& source = session.source;
    std::vector<session::Entry> entries{directory_entry(""), directory_entry("d")};
    const auto add_file = [&](const std::string& path) { entries.push_back(file_entry(path, contents_.at(path).size())); };
    add_file("d/small");
    add_file("d/replaced");
    entries.push_back(directory_entry("d", session::EntryType::leave));
    entries.push_back(directory_entry("e"));
    entries.push_back(directory_entry("e/f"));
    add_file("e/f/big");
    entries.push_back(directory_entry("e/f", session::EntryType::leave));
    entries.push_back(directory_entry("e", session::EntryType::leave));
    add_file("empty");
    entries.push_back(directory_entry("", session::EntryType::leave));
    const auto over = [&] { return frozen || source.aborted != nullptr; };
    source.put_entries(entries, 0, 0);
    session.run([&] { return over() || source.verdicts.size() == entries.size(); });
    std::map<uint64_t, std::string> pack;
    for (uint64_t index = 0; index < entries.size() && !over(); ++index) {
      const session::Entry& entry = entries[index];
      const Verdict verdict = source.verdicts[index];
      if (entry.type != session::EntryType::file || (verdict != Verdict::send && verdict != Verdict::pieces)) continue;
      const std::string& content = contents_[entry.path];
      if (content.size() <= piece) {
        pack[index] = content;
        continue;
      }
      std::vector<session::Want::Range> wants = source.wants[index];
      if (verdict == Verdict::send) wants = {{0, 3}};
      for (const auto& range : wants) {
        for (uint64_t number = range.first; number < range.first + range.count; ++number) {
          if (!session.run([&] { return over() || source.has_credit(); }) || over()) return false;
          source.put_piece(index, entry.version, number,
                           as_bytes(content).subspan(number * piece, std::min(piece, content.size() - number * piece)));
          session.settle(40);  // lets the committer run in between
          session.now += std::chrono::milliseconds(300);
          session.settle(40);
        }
      }
      session::FileEnd end;
      end.index = index;
      session.source_link->post(end);
    }
    if (!over() && !pack.empty() && session.run([&] { return over() || source.has_credit(); }) && !over()) source.put_pack(pack);
    if (!over()) session.source_link->post(session::End{entries.size()});
    session.run([&] { return over() || source.summary != nullptr; });
    return source.summary != nullptr;
  }

 private:
  std::map<std::string, std::string> contents_;
};

}  // namespace

TEST_CASE("destination__power_cut_at_any_call__nothing_reported_is_lost_nor_torn") {
  enum class Directories : uint8_t { to_be_made, exist, on_a_second_disk };
  const auto directories = GENERATE(Directories::to_be_made, Directories::exist, Directories::on_a_second_disk);
  Transfer transfer;
  const std::string old_content = text(4000, 'o');
  uint64_t total_bytes = 0;
  for (const auto& [path, content] : transfer.contents()) total_bytes += content.size();
  bool finished = false;
  uint64_t cuts = 0;
  for (uint64_t cut_at = 3; !finished; ++cut_at) {
    INFO("cut before call " << cut_at);
    sim::World world(cut_at);
    const sim::NodeId node = world.add_node("receiver");
    sim::SimFileSystem files(world, node);
    files.make_directory("/root/d");
    if (directories == Directories::on_a_second_disk) files.mount_at("/root/e");
    if (directories == Directories::exist) files.make_directory("/root/e/f");
    files.put("/root/d/replaced", old_content);
    sim::SimSqliteVfs vfs(world, files);
    bool frozen = false;
    std::map<std::string, std::string> told;
    bool summed_up = false;
    uint64_t durable_bytes = 0;
    {
      files.freeze_after(cut_at, [&] { frozen = true; });
      auto root = Root::open(files, "/root", vfs.name());
      if (root) {
        InlinePool work(files);
        Session session(**root, work, {.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0});
        summed_up = transfer.run(session, frozen);
        finished = summed_up && !frozen;
        told = session.notes.files;
        durable_bytes = session.source.durable.bytes;
        if (finished) session.source_link->post(session::Bye{});
      }
    }
    if (finished) break;
    ++cuts;
    files.crash();
    files.mount();

    const sim::Tree tree = files.tree("/root");
    for (const auto& [path, content] : transfer.contents()) {
      INFO(path);
      const auto found = tree.find(path);
      const bool is_whole = found != tree.end() && found->second.content == content && found->second.stat.mtime == listed_mtime;
      const auto status = told.find(path);
      const bool was_told = status != told.end() && status->second == "ok";
      if (was_told) {
        REQUIRE(is_whole);
      } else if (path == "d/replaced") {
        const bool is_old = found != tree.end() && found->second.content == old_content;
        REQUIRE((is_old || is_whole));
      } else {
        REQUIRE((found == tree.end() || is_whole));
      }
    }
    if (summed_up) REQUIRE(tree.at("d").stat.mtime == listed_mtime);

    // The next run finishes the job.
    bool never_frozen = false;
    {
      auto root = Root::open(files, "/root", vfs.name());
      REQUIRE(root);
      InlinePool work(files);
      Session session(**root, work, {.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0});
      REQUIRE(transfer.run(session, never_frozen));
      REQUIRE(session.source.summary->bytes <= total_bytes - durable_bytes);  // what was acked durable is not sent again
      session.source_link->post(session::Bye{});
      REQUIRE(session.run([&] { return session.destination->finished() && session.destination->idle(); }));
    }
    files.crash();  // exit 0 means that a power cut right after loses nothing
    files.mount();
    for (const auto& [path, content] : transfer.contents()) {
      INFO(path);
      REQUIRE(files.get("/root/" + path) == content);
    }
    REQUIRE(files.tree("/root").at("d").stat.mtime == listed_mtime);
    REQUIRE(files.open_descriptors() == 0);
  }
  CHECK(cuts > 20);
}

TEST_CASE("destination__power_cut_after_a_packs_rename__the_new_file_whole_or_the_old_one") {
  const std::string old_content = text(4000, 'o');
  const std::string new_content = text(90'000, 'n');
  uint64_t renamed = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    sim::World world(seed);
    sim::SimFileSystem files(world, world.add_node("receiver"));
    files.put("/root/f", old_content);
    sim::SimSqliteVfs vfs(world, files);
    bool frozen = false;
    {
      auto root = Root::open(files, "/root", vfs.name()).value();
      InlinePool work(files);
      Session session(*root, work, {.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0});
      session.source.put_entries({file_entry("f", new_content.size())}, 0, 0);
      REQUIRE(session.run([&] { return session.source.verdicts.size() == 1; }));
      files.set_watch([&](std::string_view call, const std::string& path) {
        if (call.starts_with("rename") && path == "/root/f") files.freeze_after(0, [&] { frozen = true; });
      });
      session.source.put_pack({{0, new_content}});
      REQUIRE(session.run([&] { return frozen; }));
    }
    files.set_watch(nullptr);
    files.crash();
    files.mount();
    const std::string found = files.get("/root/f").value();
    REQUIRE((found == old_content || found == new_content));
    if (found == new_content) ++renamed;
  }
  CHECK(renamed > 0);
  CHECK(renamed < 40);
}

}  // namespace ccixfer::recv
