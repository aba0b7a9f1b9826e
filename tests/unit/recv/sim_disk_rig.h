// A session below a root on a simulated disk, whose ledger is there too.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/recv/opened_root.h"
#include "tests/unit/recv/destination_fixture.h"
#include "transports/sim/sim_file_system.h"
#include "transports/sim/sim_sqlite_vfs.h"
#include "transports/sim/world.h"

namespace ccixfer::recv::test {

struct SimDiskRig {
  explicit SimDiskRig(const sim::FileSystemOptions& disk = {}) : world(7), files(world, world.add_node("receiver"), disk) {
    files.make_directory("/root");
    vfs = std::make_unique<sim::SimSqliteVfs>(world, files);
    root = Root::open(files, "/root", vfs->name()).value();
    work = std::make_unique<InlinePool>(files);
  }
  ~SimDiskRig() {
    files.set_hook({});
    session.reset();
  }
  SimDiskRig(const SimDiskRig&) = delete;
  SimDiskRig& operator=(const SimDiskRig&) = delete;

  void begin(uint32_t options = archive) {
    session.reset();
    session = std::make_unique<Session>(
        *root, *work, DestinationOptions{.options = options, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0});
  }
  void announce(const std::vector<session::Entry>& entries) {
    session->source.put_entries(entries, 0, 0);
    REQUIRE(session->run([&] { return session->source.verdicts.size() == entries.size(); }));
  }
  void put_piece(uint64_t number, Bytes data) {
    REQUIRE(session->run([&] { return session->source.has_credit(); }));
    session->source.put_piece(0, 5, number, data);
  }
  void post_end() {
    session::FileEnd end;
    end.index = 0;
    session->source_link->post(end);
  }
  bool run_until_result() {
    return session->run([&] { return session->source.results.contains(0); });
  }
  [[nodiscard]] std::vector<uint64_t> asked_again() const {
    std::vector<uint64_t> pieces;
    for (const session::Resend& resend : session->source.resends) pieces.push_back(resend.piece);
    std::sort(pieces.begin(), pieces.end());
    return pieces;
  }

  sim::World world;
  sim::SimFileSystem files;
  std::unique_ptr<sim::SimSqliteVfs> vfs;
  std::unique_ptr<Root> root;
  std::unique_ptr<InlinePool> work;
  std::unique_ptr<Session> session;
};

[[nodiscard]] inline std::string pattern(size_t size_bytes, char seed) {
  std::string data(size_bytes, seed);
  for (size_t i = 0; i < data.size(); i += 513) data[i] = static_cast<char>(i / 513);
  return data;
}
// The piece of that number; the last one may be shorter.
[[nodiscard]] inline Bytes part(const std::string& data, uint64_t number) {
  const Bytes rest = as_bytes(data).subspan(number * session::piece_bytes);
  return rest.first(std::min<size_t>(rest.size(), session::piece_bytes));
}

}  // namespace ccixfer::recv::test
