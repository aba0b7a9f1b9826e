// A session whose ledger fails, at any call that SQLite makes of the disk and from then on: it says so or gets on, and the next
// session finishes.
#include "tests/unit/recv/destination_rig.h"
#include "tests/unit/recv/faulty_vfs.h"

namespace ccixfer::recv {

using namespace test;

TEST_CASE("destination__ledger_fails_from_any_call_on__said_and_the_next_session_finishes") {
  const auto data = pattern(piece + 17, 1);
  const auto piece_of = [&](uint64_t i) { return Bytes(data).subspan(i * piece, i == 0 ? piece : 17); };
  const int code = GENERATE(SQLITE_IOERR, SQLITE_FULL);
  bool failed = false, hit = true;
  for (uint64_t number = 1; hit; number += code == SQLITE_FULL ? 4 : 1) {
    INFO("call " << number << ", code " << code);
    FaultyVfs vfs;
    Rig rig({.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0}, 1, "", 1024, FaultyVfs::name);
    uint64_t calls = 0;
    vfs.hook = [&](std::string_view) { return ++calls >= number ? code : SQLITE_OK; };
    const auto ended = [&] { return rig.source().aborted != nullptr || rig.source().results.contains(0); };
    const auto until = [&](const auto& what) { REQUIRE(rig.session->run([&] { return what() || ended(); })); };
    rig.source().put_entries({file_entry("f", data.size())}, 0, 0);
    until([&] { return !rig.source().verdicts.empty(); });
    for (uint64_t i = 0; i < 2 && !ended(); ++i) {
      until([&] { return rig.source().has_credit(); });
      if (!ended()) rig.source().put_piece(0, 5, i, piece_of(i));
      until([&] { return rig.source().durable.bytes == (i == 0 ? piece : data.size()); });
    }
    if (!ended()) rig.session->source_link->post(end_of(0));
    until([] { return false; });
    if (rig.source().aborted != nullptr) {
      failed = true;
      CHECK(rig.source().aborted->kind == (code == SQLITE_FULL ? ErrorKind::no_space : ErrorKind::file_io));
      CHECK(rig.source().aborted->message.find("ledger") != std::string::npos);
      CHECK_FALSE(rig.temporary.has("f"));
    } else {
      CHECK(rig.source().results[0].kind == ErrorKind::ok);
      CHECK(rig.temporary.has("f"));
    }
    hit = calls >= number;
    vfs.hook = nullptr;
    rig.again();
    rig.announce({file_entry("f", data.size())});
    if (rig.source().verdicts[0] == session::Verdict::send || rig.source().verdicts[0] == session::Verdict::pieces) {
      for (uint64_t i = 0; i < 2; ++i) rig.put_piece(0, i, piece_of(i));
      rig.session->source_link->post(end_of(0));
      REQUIRE(rig.run_until_result(0));
    }
    CHECK(rig.temporary.read("f").size() == data.size());
    CHECK(std::memcmp(rig.temporary.read("f").data(), data.data(), data.size()) == 0);
    rig.finish(1);
  }
  CHECK(failed);  // else it was not its ledger that failed
}

}  // namespace ccixfer::recv
