// The tables of core/base are complete: error kinds, statuses, counters, hashes, log levels.
#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <set>
#include <string>

#include "core/base/counters.h"
#include "core/base/hash.h"
#include "core/base/local_kinds.h"
#include "core/base/log.h"
#include "core/base/result.h"
#include "core/base/status.h"
#include "core/base/time.h"

using namespace ccixfer;

TEST_CASE("error_table__exit_codes__as_the_command_line_promises") {
  const std::map<ErrorKind, int> promised{{ErrorKind::ok, 0},
                                          {ErrorKind::usage, 1},
                                          {ErrorKind::protocol, 2},
                                          {ErrorKind::source_selection, 3},
                                          {ErrorKind::network, 10},
                                          {ErrorKind::file_io, 11},
                                          {ErrorKind::interrupted, 20},
                                          {ErrorKind::partial, 23},
                                          {ErrorKind::vanished, 24},
                                          {ErrorKind::max_delete, 25},
                                          {ErrorKind::timeout, 30},
                                          {ErrorKind::no_answer, 35},
                                          {ErrorKind::integrity, 40},
                                          {ErrorKind::authentication, 41},
                                          {ErrorKind::not_authorised, 42},
                                          {ErrorKind::no_route, 43},
                                          {ErrorKind::no_space, 44},
                                          {ErrorKind::bug, 70},
                                          {already_running, 6}};
  CHECK(promised.size() == static_cast<size_t>(last_kind) + 1);
  std::set<std::string> names;
  for (const auto& [kind, code] : promised) {
    const ErrorRow& row = error_row(kind);
    CHECK(row.kind == kind);
    CHECK(row.exit_code == code);
    CHECK(exit_code(kind) == code);
    CHECK(names.insert(row.name).second);
    CHECK(std::string(row.words).find_first_not_of(' ') != std::string::npos);
  }
  CHECK(std::string(error_row(ErrorKind::ok).name) == "ok");
}

TEST_CASE("kind_of_file_errno__full_disk_and_others__their_kinds") {
  CHECK(kind_of_file_errno(0) == ErrorKind::ok);
  CHECK(kind_of_file_errno(ENOSPC) == ErrorKind::no_space);
  CHECK(kind_of_file_errno(EDQUOT) == ErrorKind::no_space);
  CHECK(kind_of_file_errno(ENOENT) == ErrorKind::vanished);
  for (int error : {EIO, EACCES, EPERM, EROFS, ELOOP, ENOTDIR, ENAMETOOLONG, 99999, -1}) {
    CHECK(kind_of_file_errno(error) == ErrorKind::file_io);
  }
}

TEST_CASE("status__every_byte__known_has_its_own_name") {
  std::set<std::string_view> names;
  size_t known = 0;
  for (unsigned value = 0; value < 256; ++value) {
    const uint8_t byte = static_cast<uint8_t>(value);
    if (is_known_status(byte)) {
      ++known;
      CHECK(names.insert(to_string(static_cast<Status>(byte))).second);
    } else {
      CHECK(to_string(static_cast<Status>(byte)) == "unknown_status");
    }
  }
  CHECK(known == 18 + 3 + 2 + 9);
  CHECK(to_string(Status::receiver_not_ready) == "receiver_not_ready");
}

TEST_CASE("counters__every_counter__named_once_and_counts") {
  Counters counters;
  std::set<std::string_view> names;
  for (size_t i = 0; i < static_cast<size_t>(Counter::count_); ++i) {
    const Counter counter = static_cast<Counter>(i);
    CHECK(names.insert(to_string(counter)).second);
    CHECK(to_string(counter) != "unknown_counter");
    CHECK(counters.get(counter) == 0);
    counters.add(counter);
    counters.add(counter, i);
    CHECK(counters.get(counter) == i + 1);
  }
}

TEST_CASE("xxh3__published_values__match") {
  CHECK(xxh3_64({}) == 0x2d06800538d394c2ull);
  CHECK(xxh3_128({}) == Hash128{0x6001c324468d497full, 0x99aa06d3014798d8ull});
  CHECK(xxh3_64(as_bytes("x"), 1) != xxh3_64(as_bytes("x"), 2));
  CHECK_FALSE(xxh3_128(as_bytes("a")) == xxh3_128(as_bytes("b")));
}

TEST_CASE("log__levels_and_sink__only_what_was_asked_for") {
  log(LogLevel::error, "nobody listens {}", 1);
  std::string seen;
  set_log_sink([&](LogLevel, std::string_view line) { seen += line; }, LogLevel::warning);
  log(LogLevel::info, "no");
  log(LogLevel::warning, "a{}", 1);
  log_line(LogLevel::debug, "no");
  log(LogLevel::error, "b{}", 2);
  CHECK(seen == "a1b2");
  set_log_sink({}, LogLevel::info);
  CHECK_FALSE(log_enabled(LogLevel::error));
}

TEST_CASE("after__near_the_end_of_time__never") {
  CHECK(after(Instant{}, forever) == never);
  CHECK(after(Instant{Duration{5}}, forever - Duration{1}) == never);
  CHECK(after(Instant{Duration{-5}}, forever - Duration{1}) == never - Duration{6});
  CHECK(after(Instant{Duration{-5}}, Duration{7}) == Instant{Duration{2}});
  CHECK(after(Instant{Duration{5}}, Duration{7}) == Instant{Duration{12}});
}
