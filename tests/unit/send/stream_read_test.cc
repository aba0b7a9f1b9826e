// Standard input, read once from front to end.
#include "app/send/stream_read.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/stage_fakes.h"

namespace ccixfer::send_test {
namespace {

using send::EntryPhase;

constexpr uint64_t mib = 1u << 20;

struct StreamBench : StageBench {
  StreamBench() {
    input = &entries.at(entries.add(0, 0));
    input->stream = true;
  }
  void read(size_t segments_ready = 0) {
    send::ReadPace pace;
    pace.segments_ready = segments_ready;
    stream.start(pace, share);
    reap();
  }
  std::atomic<bool> was_read{false};
  send::StreamRead stream{jobs, entries, sink, heard, was_read};
  send::Entry* input = nullptr;
};

TEST_CASE("stream__input__goes_in_whole_pieces_and_ends_when_all_are_placed") {
  StreamBench bench;
  bench.files.stream = pattern(5 * mib);
  int asked = 0;
  bench.files.hook = [&asked](std::string_view call, std::string_view) {
    return call == "read_stream" && ++asked % 3 == 0 ? -EAGAIN : 0;
  };
  REQUIRE(bench.stream.want(*bench.input));
  bench.read(send::segments_ahead_max);
  CHECK(asked == 0);  // others wait for a lane
  bench.read();
  CHECK(bench.was_read);
  CHECK(bench.sink.segments.empty());
  CHECK(bench.stream.holds_buffer());  // a piece that is not full yet
  while (bench.sink.segments.size() < 2) bench.read();
  CHECK_FALSE(bench.stream.holds_buffer());
  CHECK(bench.sink.segments[0].payload_bytes == 4 * mib);
  CHECK(bench.sink.segments[1].header.sequence == 1);
  CHECK(bench.heard.grown_bytes == 5 * mib);
  bench.stream.placed(*bench.input);
  CHECK(bench.heard.ends.empty());
  bench.stream.placed(*bench.input);
  REQUIRE(bench.heard.ends.size() == 1);
  CHECK(bench.heard.ends[0].size_bytes == 5 * mib);
  CHECK(bench.heard.ends[0].has_digest);
  CHECK(bench.input->phase == EntryPhase::sent);
  CHECK(bench.input->listed.size_bytes == 5 * mib);
}

TEST_CASE("stream__another_session_took_bytes__the_rest_is_not_sent") {
  StreamBench bench;
  bench.was_read = true;
  const Result<void> wanted = bench.stream.want(*bench.input);
  REQUIRE_FALSE(wanted);
  CHECK(wanted.error().kind == ErrorKind::network);
  bench.read();
  CHECK(bench.sink.segments.empty());
}

TEST_CASE("stream__error_or_a_piece_wanted_again__the_file_is_refused") {
  for (const bool again : {true, false}) {
    StreamBench bench;
    bench.files.stream = pattern(9 * mib);
    REQUIRE(bench.stream.want(*bench.input));
    bench.read();
    if (again) {
      bench.stream.cannot_repeat(*bench.input);
    } else {
      bench.files.hook = [](std::string_view call, std::string_view) { return call == "read_stream" ? -EIO : 0; };
      bench.read();
    }
    CHECK(bench.heard.refused == std::vector<uint64_t>{0});
    CHECK(bench.input->outcome.error == (again ? ESPIPE : EIO));
    CHECK(bench.input->phase == EntryPhase::refused);
    bench.stream.placed(*bench.input);
    bench.read();
    CHECK(bench.sink.segments.size() == 1);
    CHECK(bench.heard.ends.empty());
  }
}

TEST_CASE("stream__entry_ends_while_it_is_read__nothing_of_it_goes_out") {
  StreamBench bench;
  bench.files.stream = pattern(5 * mib);
  REQUIRE(bench.stream.want(*bench.input));
  bench.stream.start({}, bench.share);
  bench.stream.entry_ends();
  bench.entries.end(*bench.input);
  bench.reap();
  CHECK(bench.sink.segments.empty());
  CHECK(bench.share.held() == 0);
  CHECK(bench.entries.used() == 0);
}

}  // namespace
}  // namespace ccixfer::send_test
