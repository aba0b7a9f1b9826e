// The lines of the audit log, and where they go.
#include "app/trust/audit_log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>

#include "tests/unit/policy/rig.h"

namespace ccixfer::policy {
using namespace test;
namespace {

constexpr int64_t at_ms = 1'795'533'817'042;  // 2026-11-24T15:23:37.042Z

AuditRecord push() {
  AuditRecord record;
  record.peer = text_of(1);
  record.name = "lab";
  record.address = "192.0.2.7:4000";
  record.direction = "push";
  record.path = "incoming/run42";
  record.files = 3;
  record.bytes = 12345;
  record.seconds = 1.23456;
  record.transfer = "00112233445566778899aabbccddeeff";
  return record;
}
AuditRecord refusal_of(const std::string& reason) {
  AuditRecord record;
  record.event = AuditRecord::Event::refused;
  record.address = "192.0.2.7:4000";
  record.outcome = ErrorKind::authentication;
  record.reason = reason;
  return record;
}

AuditLog log_to(const std::string& file) {
  AuditTargets targets;
  targets.file = file;
  return std::move(AuditLog::open(targets, [] { return at_ms; }).value());
}
size_t lines_in(const std::string& file) {
  const std::string content = content_of(file);
  return static_cast<size_t>(std::count(content.begin(), content.end(), '\n'));
}

// Files of this process may be no longer than that while it lives: what a full disk is, without one.
class ShortFiles {
 public:
  explicit ShortFiles(size_t bytes_max) {
    before_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit_);
    rlimit shorter = limit_;
    shorter.rlim_cur = bytes_max;
    setrlimit(RLIMIT_FSIZE, &shorter);
  }
  ~ShortFiles() {
    setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, before_);
  }
  ShortFiles(const ShortFiles&) = delete;
  ShortFiles& operator=(const ShortFiles&) = delete;

 private:
  rlimit limit_{};
  void (*before_)(int) = nullptr;
};

// A socket that takes what would go to the journal.
class FakeJournal {
 public:
  explicit FakeJournal(const std::string& path) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof name.sun_path);
    path.copy(name.sun_path, path.size());
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  }
  ~FakeJournal() { close(fd_); }
  FakeJournal(const FakeJournal&) = delete;
  FakeJournal& operator=(const FakeJournal&) = delete;
  std::string taken() const {
    std::string datagram(65536, '\0');
    const ssize_t n = recv(fd_, datagram.data(), datagram.size(), 0);
    datagram.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return datagram;
  }

 private:
  int fd_;
};

}  // namespace

TEST_CASE("audit__a_session__is_one_line_with_every_member") {
  CHECK(audit_line(push(), at_ms) ==
        R"({"time":"2026-11-24T15:23:37.042Z","event":"session","peer":")" + text_of(1) +
            R"(","name":"lab","address":"192.0.2.7:4000","direction":"push","path":"incoming/run42","files":3,"bytes":12345,)"
            R"("outcome":"ok","exit":0,"seconds":1.235,"transfer":"00112233445566778899aabbccddeeff"})"
            "\n");
}

TEST_CASE("audit__a_refused_attempt__has_the_reason_and_the_exit_code") {
  const std::string line = audit_line(refusal_of("the ticket is not accepted"), 0);
  contains(line, R"("time":"1970-01-01T00:00:00.000Z","event":"refused","peer":"","name":"")");
  contains(line, R"("outcome":"authentication","exit":41,"reason":"the ticket is not accepted")");
}

TEST_CASE("audit__what_a_router_saw__has_where_to_and_no_path_files_or_transfer") {
  AuditRecord record = push();
  record.event = AuditRecord::Event::connection;
  record.of_router = true;
  record.direction = "route";
  record.to = "cci://2:1:198.51.100.7:7100";
  CHECK(audit_line(record, at_ms) ==
        R"({"time":"2026-11-24T15:23:37.042Z","event":"connection","peer":")" + text_of(1) +
            R"(","name":"lab","address":"192.0.2.7:4000","direction":"route","to":"cci://2:1:198.51.100.7:7100","bytes":12345,)"
            R"("outcome":"ok","exit":0,"seconds":1.235})"
            "\n");
  contains(audit_fields(record, at_ms).front().second, "route to cci://2:1:198.51.100.7:7100: 12345 bytes");
}

TEST_CASE("audit__a_flood_of_refusals__has_a_bounded_number_of_lines_and_says_how_many_not") {
  const TempDir directory;
  const std::string file = directory.path() + "/audit";
  int64_t now_ms = at_ms;
  AuditTargets targets;
  targets.file = file;
  AuditLog log = std::move(AuditLog::open(targets, [&now_ms] { return now_ms; }).value());
  size_t said = 0;
  for (int i = 0; i < 10'000; ++i) said += log.write(refusal_of("no")) ? 1u : 0u;
  CHECK(said == 1);
  CHECK(lines_in(file) == static_cast<size_t>(refusals_at_once_max));
  AuditRecord named = refusal_of("not there");  // strangers hide no refusal of a peer that is known
  named.name = "lab";
  CHECK_FALSE(log.write(named));
  contains(content_of(file), "\"left_out\":" + std::to_string(10'000 - refusals_at_once_max) + "}\n");
  for (int i = 0; i < 100; ++i) CHECK_FALSE(log.write(push()));  // and what was admitted has its line always
  CHECK(lines_in(file) == static_cast<size_t>(refusals_at_once_max) + 101);
  now_ms -= 1'000'000;  // a clock that is set back stops nothing
  CHECK_FALSE(log.write(refusal_of("no")));
  now_ms += 3 * refusal_interval_ms;
  for (int i = 0; i < 5; ++i) CHECK_FALSE(log.write(refusal_of("no")));
  CHECK(lines_in(file) == static_cast<size_t>(refusals_at_once_max) + 104);
}

// The next line that is written has their number, and not one that is lost.
TEST_CASE("audit__a_line_that_is_lost__does_not_take_the_number_of_refusals_with_it") {
  const TempDir directory;
  const std::string file = directory.path() + "/audit";
  AuditLog log = log_to(file);
  for (int i = 0; i < refusals_at_once_max + 7; ++i) static_cast<void>(log.write(refusal_of("no")));
  {
    const ShortFiles full(1);
    CHECK(log.write(push()));
  }
  CHECK(log.write(push()));  // one was lost
  CHECK(content_of(file).ends_with("\"left_out\":7}\n"));
  CHECK_FALSE(log.write(push()));
  CHECK(content_of(file).ends_with(audit_line(push(), at_ms)));
}

TEST_CASE("audit__names_of_peers__cannot_make_lines_or_move_a_cursor") {
  AuditRecord record = push();
  record.path = "a\n{\"event\":\"session\"}\x1b[2J\x7f\xc2\x85";
  record.name = "\xff\n";
  record.reason = std::string(100'000, '\n');
  const std::string line = audit_line(record, at_ms);
  CHECK(line.size() < 20'000);
  CHECK(line.find('\n') == line.size() - 1);
  for (const char c : line.substr(0, line.size() - 1)) CHECK((c >= ' ' && c <= '~') == (c != '\x7f'));
  record.path = "\xff/x";
  contains(audit_line(record, at_ms), R"("path":"%FF/x","escaped":true)");
}

TEST_CASE("audit__two_records__are_appended_to_a_private_file") {
  const TempDir directory;
  const std::string file = directory.path() + "/audit";
  {
    AuditLog log = log_to(file);
    CHECK_FALSE(log.write(push()));
  }
  AuditLog log = log_to(file);
  CHECK_FALSE(log.write(refusal_of("x")));
  CHECK(content_of(file) == audit_line(push(), at_ms) + audit_line(refusal_of("x"), at_ms));
  CHECK(mode_of(file) == 0600);
}

TEST_CASE("audit__reopened__writes_to_the_file_that_has_the_name_now") {
  const TempDir directory;
  const std::string file = directory.path() + "/audit", old = directory.path() + "/audit.1";
  AuditLog log = log_to(file);
  CHECK_FALSE(log.write(push()));
  REQUIRE(rename(file.c_str(), old.c_str()) == 0);
  CHECK_FALSE(log.write(push()));
  CHECK_FALSE(log.reopen());
  CHECK_FALSE(log.write(push()));
  CHECK(lines_in(old) == 2);
  CHECK(lines_in(file) == 1);
}

TEST_CASE("audit__a_place_that_cannot_be_opened__is_a_usage_error_and_later_a_warning") {
  const TempDir directory;
  AuditTargets targets;
  targets.file = directory.path() + "/no/audit";
  contains(refusal(AuditLog::open(targets, [] { return at_ms; }), ErrorKind::usage), "--audit-log");
  const std::string place = directory.path() + "/d";
  REQUIRE(mkdir(place.c_str(), 0700) == 0);
  AuditLog log = log_to(place + "/audit");
  REQUIRE(rename(place.c_str(), (place + "2").c_str()) == 0);
  const auto words = log.reopen();
  REQUIRE(words);
  contains(*words, "the old one stays in use");
  CHECK_FALSE(log.write(push()));
  CHECK(lines_in(place + "2/audit") == 1);
}

TEST_CASE("audit__a_full_disk__is_said_once_and_its_end_with_the_count") {
  const TempDir directory;
  const std::string file = directory.path() + "/audit";
  AuditLog log = log_to(file);
  {
    const ShortFiles full(100);
    const auto words = log.write(push());  // a part of a line
    REQUIRE(words);
    contains(*words, "WARNING: cannot write the audit log: " + file);
    CHECK_FALSE(log.write(push()));
  }
  const auto words = log.write(push());
  REQUIRE(words);
  contains(*words, "2 lines are lost");
  CHECK_FALSE(log.write(push()));
  const std::string whole = audit_line(push(), at_ms);
  CHECK(content_of(file) == whole + whole);  // no line is hidden behind a torn one, and none is broken
}

TEST_CASE("audit__a_torn_line__goes_and_those_of_other_processes_stay") {
  const TempDir directory;
  const std::string file = directory.path() + "/audit";
  AuditLog log = log_to(file), other = log_to(file);
  const std::string whole = audit_line(push(), at_ms);
  CHECK_FALSE(log.write(push()));
  CHECK_FALSE(other.write(push()));
  {
    const ShortFiles full(2 * whole.size() + 100);
    CHECK(log.write(push()));
  }
  CHECK(content_of(file) == whole + whole);
  CHECK_FALSE(other.write(push()));
  CHECK(log.write(push()));  // that it is over
  CHECK(content_of(file) == whole + whole + whole + whole);
}

TEST_CASE("audit__a_pipe_that_nobody_reads__does_not_block") {
  const TempDir directory;
  const std::string file = directory.path() + "/pipe";
  REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  AuditTargets targets;
  targets.file = file;
  refusal(AuditLog::open(targets, [] { return at_ms; }), ErrorKind::usage);
}

TEST_CASE("audit__targets__are_the_file_the_journal_or_both") {
  CHECK(audit_targets("f", false).file == "f");
  CHECK_FALSE(audit_targets("f", false).journal);
  CHECK(audit_targets("journald", false).file.empty());
  CHECK(audit_targets("journald", false).journal);
  CHECK(audit_targets("f", true).file == "f");
  CHECK(audit_targets("f", true).journal);
  CHECK(audit_targets("", true).journal);
  CHECK_FALSE(audit_targets("", false).journal);
  CHECK(audit_targets("", false).file.empty());
}

TEST_CASE("journal__a_datagram__has_the_bytes_of_the_native_protocol") {
  const std::string expected("A\n\x01\0\0\0\0\0\0\0x\nB\n\x03\0\0\0\0\0\0\0y\nz\n", 26);
  CHECK(journal_datagram({{"A", "x"}, {"B", "y\nz"}}) == expected);
}

TEST_CASE("journal__a_record__arrives_with_its_fields") {
  const TempDir directory;
  const std::string path = directory.path() + "/socket";
  AuditTargets targets;
  targets.journal = true;
  targets.socket = path;
  AuditLog log = std::move(AuditLog::open(targets, [] { return at_ms; }).value());
  const auto words = log.write(push());  // nobody is there
  REQUIRE(words);
  contains(*words, "the journal");
  const FakeJournal journal(path);
  REQUIRE(log.write(refusal_of("odd\x1bwords")));  // one was lost
  const std::string datagram = journal.taken();
  contains(datagram, "refused: a stranger from 192.0.2.7:4000: attempt of .: odd%1Bwords\n");
  contains(datagram, std::string("PRIORITY\n\x01\0\0\0\0\0\0\0"
                                 "4\n",
                                 19));
  contains(datagram, std::string("CCIXFER_EXIT\n\x02\0\0\0\0\0\0\0"
                                 "41\n",
                                 24));
  CHECK_FALSE(log.write(push()));
  contains(journal.taken(), "lab from 192.0.2.7:4000: push of incoming/run42: 3 files, 12345 bytes, done\n");
}

// journald drops fields of other names.
TEST_CASE("journal__names_of_fields__are_capitals_digits_and_underscores") {
  AuditRecord record = refusal_of("no");
  record.left_out = 3;
  bool has_left_out = false;
  for (const auto& [name, value] : audit_fields(record, at_ms)) {
    INFO(name);
    CHECK(name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos);
    has_left_out = has_left_out || (name == "CCIXFER_LEFT_OUT" && value == "3");
  }
  CHECK(has_left_out);
}

TEST_CASE("journal__standard_error__is_it_by_device_and_inode_only") {
  const TempDir directory;
  struct stat stat {};
  REQUIRE(fstat(directory.fd(), &stat) == 0);
  const std::string own = std::to_string(stat.st_dev) + ":" + std::to_string(stat.st_ino);
  CHECK(is_journal(own.c_str(), directory.fd()));
  CHECK_FALSE(is_journal((own + "1").c_str(), directory.fd()));
  CHECK_FALSE(is_journal(nullptr, directory.fd()));
  CHECK_FALSE(is_journal(own.c_str(), -1));
}

}  // namespace ccixfer::policy
