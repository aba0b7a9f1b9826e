// A peer that sends what was not asked for.
#include "app/recv/asked.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/rig.h"

namespace ccixfer::recv {

using session::Entry;
using session::EntryType;
using namespace test;

namespace {

Entry file(const std::string& path) { return file_entry(path, 3); }
Entry directory(const std::string& path) { return directory_entry(path); }
Entry leave(const std::string& path) { return directory_entry(path, EntryType::leave); }
Entry link(const std::string& path, const std::string& target = "x") {
  Entry entry = file_entry(path, 0);
  entry.type = EntryType::symlink;
  entry.target = target;
  return entry;
}

bool may_come(const std::string& path, const std::vector<Entry>& entries, uint32_t options = archive) {
  // In one segment, and each in one of its own: the same answer.
  const bool at_once = AskedEntries(asked_for(path, options)).judge(entries).has_value();
  AskedEntries one_by_one(asked_for(path, options));
  bool all = true;
  for (const Entry& entry : entries) all = all && one_by_one.judge({entry}).has_value();
  CHECK(at_once == all);
  return at_once;
}

DestinationOptions pull_of(const std::string& path, uint32_t options = archive) {
  DestinationOptions wanted{.options = options | session::option_directory, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0};
  wanted.asked = asked_for(path, options);
  return wanted;
}

}  // namespace

TEST_CASE("asked__what_an_honest_walk_sends__may_come") {
  CHECK(may_come("data", {file("data")}));
  CHECK(may_come("a/b/data", {file("data")}));
  CHECK(may_come("data", {link("data")}));
  CHECK(may_come("data", {directory("data"), file("data/.bashrc"), directory("data/d"), file("data/d/x"), leave("data/d"),
                          link("data/l"), leave("data")}));
  const std::vector<Entry> content{directory(""), file("a"), directory("b"), file("b/a"), file("b/b"), leave("b"), leave("")};
  CHECK(may_come("data/", content));
  CHECK(may_come("", content));
  for (const char* path : {".", "./", "data/.", "data//", "./data/./"}) CHECK(may_come(path, content));
  CHECK(may_come("a//./data", {file("data")}));
  CHECK(may_come("data/", {file("data")}));  // a file that was called a directory
  CHECK(may_come("data", {directory("data"), directory("data/a"), leave("data/a"), file("data/a.x"), leave("data")}));
  CHECK(may_come("data/", {directory(""), file("\x7f"), file("\x80"), leave("")}));  // in byte order
  CHECK(may_come("data", {}));
}

TEST_CASE("asked__other_names__may_not_come") {
  CHECK_FALSE(may_come("data", {file(".bashrc")}));
  CHECK_FALSE(may_come("data", {file("data"), file(".bashrc")}));
  CHECK_FALSE(may_come("data", {directory("data"), leave("data"), directory(".ssh"), file(".ssh/authorized_keys")}));
  CHECK_FALSE(may_come("data", {file(".ssh/authorized_keys")}));
  CHECK_FALSE(may_come("data", {file("data/x")}));  // in a directory that was not begun
  CHECK_FALSE(may_come("data", {directory(""), file("data")}));
  CHECK_FALSE(may_come("data", {file("")}));
  CHECK_FALSE(may_come("data", {file("datax")}));
  CHECK_FALSE(may_come("a/b/data", {directory("a"), directory("a/b"), file("a/b/data")}));
  CHECK_FALSE(may_come("data/", {directory("data"), file("data/x")}));
  CHECK_FALSE(may_come("data/", {file("other")}));
  CHECK_FALSE(may_come("data/", {file("data"), file("other")}));
  CHECK_FALSE(may_come("data/", {file("")}));
  CHECK_FALSE(may_come("", {file("")}));
  CHECK_FALSE(may_come("data/.", {directory("data"), file("data/x")}));
}

TEST_CASE("asked__links_and_directories_that_nobody_asked_for__may_not_come") {
  const uint32_t plain = session::option_recursive;
  CHECK_FALSE(may_come("data", {link("data")}, plain));
  CHECK_FALSE(may_come("data/", {directory(""), link("l", "/etc")}, plain));
  CHECK(may_come("data", {file("data")}, 0));
  CHECK_FALSE(may_come("data", {directory("data")}, 0));
}

TEST_CASE("asked__below_a_link_twice_or_in_no_order__may_not_come") {
  CHECK_FALSE(may_come("data/", {directory(""), link("l", "/etc"), file("l/passwd")}));
  CHECK_FALSE(may_come("data", {link("data", "/etc"), file("data/passwd")}));
  CHECK_FALSE(may_come("data/", {directory(""), file("f"), file("f/x")}));
  CHECK_FALSE(may_come("data/", {directory(""), link("a", "/etc"), directory("a"), file("a/passwd")}));
  CHECK_FALSE(may_come("data/", {directory(""), file("a"), file("a")}));
  CHECK_FALSE(may_come("data/", {directory(""), directory("a"), leave("a"), link("a")}));
  CHECK_FALSE(may_come("data/", {directory(""), file("b"), file("a")}));
  CHECK_FALSE(may_come("data/", {directory(""), directory("a"), leave("a"), file("a/x")}));
  CHECK_FALSE(may_come("data/", {directory(""), directory("")}));
  CHECK_FALSE(may_come("data/", {directory(""), leave(""), directory("")}));
  CHECK_FALSE(may_come("data/", {directory(""), leave("a")}));
  CHECK_FALSE(may_come("data/", {leave("")}));
}

TEST_CASE("asked__names_of_the_receiver__may_not_come") {
  for (const char* name : {".ccixfer", ".CCIxfer", ".ccixfer.0123.part"})
    CHECK_FALSE(may_come("data/", {directory(""), file(name)}));
  CHECK_FALSE(may_come("data/", {directory(""), directory("d"), directory("d/.ccixfer")}));
}

TEST_CASE("destination__server_sends_what_was_not_asked_for__protocol_and_nothing_written") {
  Rig rig(pull_of("data"));
  SECTION("from the beginning") {
    rig.source().put_entries({directory_entry("data"), file("data/x"), leave("data"), file(".bashrc")}, 0, 0);
  }
  SECTION("after an honest beginning") {
    rig.announce({directory_entry("data"), file("data/x")});
    rig.source().put_pack({{1, "abc"}});
    REQUIRE(rig.run_until_result(1));
    rig.source().put_entries({leave("data"), directory(".ssh"), file(".ssh/authorized_keys")}, 2, 1);
  }
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
  REQUIRE(rig.session->destination->error() != nullptr);
  CHECK(rig.session->destination->error()->message.find("not asked for") != std::string::npos);
  for (const char* name : {".bashrc", ".ssh", ".ssh/authorized_keys"}) CHECK_FALSE(rig.temporary.has(name));
  CHECK(rig.session->counters().get(Counter::session_rejected) == 1);
}

TEST_CASE("destination__a_server_that_sends_a_link_without_links__protocol_and_no_link") {
  Rig rig(pull_of("data/", session::option_recursive));
  rig.source().put_entries({directory_entry(""), link("etc", "/etc")}, 0, 0);
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
  CHECK_FALSE(rig.temporary.has("etc"));
}

TEST_CASE("destination__a_push_names_what_it_likes__it_was_not_asked_for_anything") {
  Rig rig;
  rig.announce({file("a"), file("zz"), file("b")});
  CHECK(rig.source().verdicts.size() == 3);
}

}  // namespace ccixfer::recv
