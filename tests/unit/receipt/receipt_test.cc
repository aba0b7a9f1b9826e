// Receipts: their lines, their signature, and comparing files with them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "app/receipt/book.h"
#include "app/receipt/describe.h"
#include "app/receipt/reader.h"
#include "transports/sim/sim_file_system.h"
#include "transports/sim/world.h"

namespace ccixfer::receipt {
namespace {

// What is signed and the digests of it were made with other programs (sha256sum, openssl).
constexpr const char* abc_sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

struct Disk {
  Disk() : world(5), files(world, world.add_node("host")) { files.make_directory("/out"); }
  sim::World world;
  sim::SimFileSystem files;
};

Entry file(const std::string& path, uint64_t size_bytes = 3) {
  Entry entry;
  entry.path = path;
  entry.size_bytes = size_bytes;
  entry.mtime = {1'700'000'000, 5};
  entry.mode = 0644;
  entry.sha256 = trust::sha256_from_hex(abc_sha256);
  return entry;
}

Header header() {
  Header header;
  header.peer = "tcp://10.0.0.2:7000";
  header.status = "ok";
  return header;
}

std::string written(const std::vector<Entry>& entries, const std::optional<trust::Identity>& identity) {
  Disk disk;
  Book book;
  book.begin("5f0c");
  for (const Entry& entry : entries) book.on_entry(entry);
  REQUIRE(book.write(disk.files, "/out/receipt", header(), identity).has_value());
  return *disk.files.get("/out/receipt");
}

struct Text {
  explicit Text(const std::string& text) : file(std::tmpfile()) {
    REQUIRE(file != nullptr);
    REQUIRE(std::fwrite(text.data(), 1, text.size(), file) == text.size());
  }
  ~Text() { std::fclose(file); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  std::FILE* file;
};

ErrorKind outcome(const std::string& text) {
  const Text in(text);
  Reader reader(in.file, "receipt");
  const auto checked = reader.check();
  return checked ? ErrorKind::ok : checked.error().kind;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

}  // namespace

TEST_CASE("receipt_line__each_kind__bytes_as_documented") {
  Header first = header();
  first.side = Side::destination;
  first.directory = "/data";
  first.archive = true;
  first.time_s = 7;
  CHECK(encode(first) ==
        "{\"receipt\":1,\"side\":\"destination\",\"transfer\":\"\",\"peer\":\"tcp://10.0.0.2:7000\",\"path\":\"\","
        "\"directory\":\"/data\",\"archive\":true,\"time\":7,\"status\":\"ok\"}\n");
  CHECK(encode(file("d/a")) == std::string("{\"type\":\"file\",\"path\":\"d/a\",\"size\":3,\"mtime\":1700000000,\"mtime_ns\":5,"
                                           "\"mode\":\"0644\",\"sha256\":\"") +
                                   abc_sha256 + "\"}\n");
  Entry odd = file("\xff");
  odd.sha256.reset();
  CHECK(encode(odd).find("\"path64\":\"/w==\"") != std::string::npos);
  CHECK(encode(odd).find("\"sha256\":null") != std::string::npos);
  CHECK(encode(End{1, 2, 3, 4}) == "{\"end\":true,\"files\":1,\"directories\":2,\"links\":3,\"bytes\":4}\n");
  CHECK(encode(Signed{}) == "{\"signature\":null}\n");
  CHECK(std::get<Entry>(parse(std::string_view(encode(odd)).substr(0, encode(odd).size() - 1)).value()) == odd);
}

TEST_CASE("receipt_line__what_is_none__refused") {
  for (const char* line :
       {"", "{}", "[]", "7", "{\"type\":\"file\"}", "{\"type\":\"directory\",\"path\":\"../x\",\"mode\":\"0755\"}",
        "{\"type\":\"directory\",\"path\":\"/x\",\"mode\":\"0755\"}", "{\"type\":\"directory\",\"path\":\"\",\"mode\":\"0755\"}",
        "{\"type\":\"directory\",\"path\":\"x\",\"mode\":\"10000\"}", "{\"type\":\"directory\",\"path\":\"x\",\"mode\":755}",
        "{\"type\":\"link\",\"path\":\"x\",\"target\":\"\"}", "{\"type\":\"device\",\"path\":\"x\"}",
        "{\"type\":\"link\",\"path\":\"x\",\"target64\":\"eA==\"}",  // UTF-8 has one form only
        "{\"signature\":{\"id\":\"cx1\"}}", "{\"end\":true,\"files\":-1,\"directories\":0,\"links\":0,\"bytes\":0}"}) {
    INFO(line);
    const auto parsed = parse(line);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().kind == ErrorKind::usage);
  }
  CHECK(parse("{\"receipt\":2}").error().kind == ErrorKind::protocol);
  CHECK_FALSE(parse("{\"type\":\"directory\",\"path\":\"" + std::string(line_bytes_max, 'x') + "\"}").has_value());
}

TEST_CASE("sha256sum_line__odd_names__escaped_as_sha256sum_does_it") {
  const auto digest = *trust::sha256_from_hex(abc_sha256);
  CHECK(sha256sum_line(digest, "a b") == std::string(abc_sha256) + "  a b\n");
  CHECK(sha256sum_line(digest, "a\\b\nc\r") == "\\" + std::string(abc_sha256) + "  a\\\\b\\nc\\r\n");
  CHECK(sha256sum_line(digest, "-") == std::string(abc_sha256) + "  ./-\n");  // not its standard input
  CHECK(sha256sum_line(digest, "-a") == std::string(abc_sha256) + "  -a\n");
}

TEST_CASE("receipt_order__depth_first__a_directory_before_what_only_begins_like_it") {
  const std::vector<std::string> wanted{"a", "a/x", "a/x/y", "a-b", "a.b", "b"};
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (size_t j = 0; j < wanted.size(); ++j) {
      CHECK(comes_before(wanted[i], wanted[j]) == (i < j));
      CHECK((order_key(wanted[i]) < order_key(wanted[j])) == (i < j));
    }
  }
}

TEST_CASE("book__entries_in_any_order_and_twice__each_once_in_order_and_signed") {
  const trust::Identity identity = trust::Identity::generate().value();
  Entry again = file("b", 9);
  const std::string text = written({file("c"), file("b"), file("a/x"), file("a-b"), again}, identity);
  const Text in(text);
  Reader reader(in.file, "receipt");
  const auto checked = reader.check();
  REQUIRE(checked.has_value());
  CHECK(checked->signer == identity.id());
  CHECK(checked->end == End{4, 0, 0, 18});
  std::vector<std::string> paths;
  for (auto entry = reader.next(); entry && *entry; entry = reader.next()) {
    paths.push_back((*entry)->path);
    if ((*entry)->path == "b") CHECK(**entry == again);
  }
  CHECK(paths == std::vector<std::string>{"a/x", "a-b", "b", "c"});
}

TEST_CASE("book__second_session_of_a_transfer__only_what_it_tells_is_listed") {
  Disk disk;
  Book book;
  book.begin("one");
  book.on_entry(file("a"));
  book.begin("one");
  book.on_entry(file("b"));
  book.begin("two");  // another pull into the same directory
  book.on_entry(file("b", 7));
  book.on_entry(file("c"));
  REQUIRE(book.write(disk.files, "/out/receipt", header(), std::nullopt).has_value());
  const std::string text = *disk.files.get("/out/receipt");
  CHECK(text.find("\"path\":\"a\"") == std::string::npos);
  CHECK(text.find("\"files\":2") != std::string::npos);
  CHECK(text.find("\"size\":7") != std::string::npos);
  CHECK(text.find("\"transfer\":\"one two\"") != std::string::npos);
}

TEST_CASE("book__cannot_be_written__the_old_receipt_stays") {
  Disk disk;
  disk.files.put("/out/receipt", "old");
  Book book;
  book.begin("one");
  book.on_entry(file("a"));
  for (const char* failing : {"open", "pwrite", "fsync", "rename_at"}) {
    disk.files.set_hook([failing](std::string_view call, std::string_view) { return call == failing ? -ENOSPC : 0; });
    const auto result = book.write(disk.files, "/out/receipt", header(), std::nullopt);
    disk.files.set_hook({});
    INFO(failing);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().kind == ErrorKind::no_space);
    CHECK(disk.files.get("/out/receipt") == "old");
    CHECK(disk.files.tree("/out").size() == 1);
  }
}

TEST_CASE("book__other_files_beside_the_receipt__are_left_alone") {
  Disk disk;
  const std::string first = fmt::format("/out/receipt.{}-0.tmp", ::getpid());
  disk.files.put("/out/receipt.new", "the user's");
  disk.files.put(first, "of a run that was killed");
  Book book;
  book.begin("one");
  book.on_entry(file("a"));
  REQUIRE(book.write(disk.files, "/out/receipt", header(), std::nullopt));
  CHECK(disk.files.get("/out/receipt.new") == "the user's");
  CHECK(disk.files.get(first) == "of a run that was killed");
  CHECK(disk.files.tree("/out").size() == 3);
}

TEST_CASE("receipt__changed_torn_or_forged__said_so") {
  const trust::Identity identity = trust::Identity::generate().value(), other = trust::Identity::generate().value();
  const std::string good = written({file("a"), file("b")}, identity);
  CHECK(outcome(good) == ErrorKind::ok);
  CHECK(outcome(replaced(good, "\"path\":\"b\"", "\"path\":\"c\"")) == ErrorKind::authentication);
  CHECK(outcome(replaced(good, trust::to_string(identity.id()), trust::to_string(other.id()))) == ErrorKind::authentication);
  CHECK(outcome(replaced(good, "\"size\":3", "\"size\":4")) == ErrorKind::integrity);
  CHECK(outcome(replaced(good, "\"path\":\"b\"", "\"path\":\"a\"")) == ErrorKind::integrity);
  CHECK(outcome(good + "\n") == ErrorKind::integrity);
  // With a signature of somebody else over the very same bytes, its own id tells.
  const std::string theirs = written({file("a"), file("b")}, other);
  const size_t first_end = good.find('\n');
  for (size_t cut = 0; cut < good.size(); ++cut) {
    const ErrorKind kind = outcome(good.substr(0, cut));
    CHECK(kind == (cut <= first_end ? ErrorKind::usage : ErrorKind::integrity));
  }
  // Every byte counts: one that is another is found.
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK(outcome(changed) != ErrorKind::ok);
  }
  CHECK(outcome(written({}, std::nullopt)) == ErrorKind::ok);
}

TEST_CASE("receipt__told_to_stop_between_two_lines__is_interrupted_and_nothing_else") {
  const Text in(written({file("a"), file("b")}, std::nullopt));
  const auto lines_read = [&](size_t lines_max) {
    size_t lines = 0;
    Reader reader(in.file, "receipt", [&] { return lines++ == lines_max; });
    const auto checked = reader.check();
    if (!checked) {
      CHECK(checked.error().kind == ErrorKind::interrupted);
      return std::string("checked");
    }
    for (;;) {
      const auto entry = reader.next();
      if (entry && !*entry) return std::string("all");
      if (entry) continue;
      CHECK(entry.error().kind == ErrorKind::interrupted);
      return std::string("given");
    }
  };
  for (size_t at = 0; at < 5; ++at) CHECK(lines_read(at) == "checked");  // head, two entries, end and signature
  for (size_t at = 5; at < 9; ++at) CHECK(lines_read(at) == "given");    // the same without the signature
  CHECK(lines_read(9) == "all");
}

TEST_CASE("describe__file_directory_and_link__as_they_stand") {
  Disk disk;
  disk.files.put("/tree/d/f", "abc", 0640, ports::FileTime{9, 1});
  const int root = disk.files.open(ports::FileSystem::no_directory, "/tree", {.directory = true}, 0);
  const int below = disk.files.open(root, "d", {.directory = true}, 0);
  REQUIRE(disk.files.symlink_at("f", below, "l") == 0);
  Subject subject;
  subject.directory = root;
  Entry entry;
  subject.below = "d/f";
  REQUIRE(describe(disk.files, subject, entry));
  CHECK(entry.mode == 0640);
  CHECK(entry.mtime == ports::FileTime{9, 1});
  REQUIRE(entry.sha256.has_value());
  CHECK(trust::to_hex(*entry.sha256) == abc_sha256);
  subject.below = "d/l";
  CHECK_FALSE(describe(disk.files, subject, entry));  // no link is followed
  subject.type = EntryType::link;
  REQUIRE(describe(disk.files, subject, entry));
  CHECK(entry.target == "f");
  subject.type = EntryType::directory;
  subject.below = "d";
  REQUIRE(describe(disk.files, subject, entry));
  CHECK(entry.mode == 0755);
  subject.type = EntryType::file;
  CHECK_FALSE(describe(disk.files, subject, entry));
}

TEST_CASE("describe__file_that_nobody_may_read__is_there_without_a_digest_wherever_it_stands") {
  Disk disk;
  const std::string path = GENERATE("f", "d/f", "d/e/f");
  disk.files.put("/tree/" + path, "abc", 0, ports::FileTime{9, 1});
  Subject subject;
  subject.directory = disk.files.open(ports::FileSystem::no_directory, "/tree", {.directory = true}, 0);
  subject.below = path;
  Entry entry;
  const bool is_shut = GENERATE(false, true);  // the directory that it stands in
  CAPTURE(path, is_shut);
  disk.files.set_hook([&](std::string_view call, std::string_view name) {
    const bool is_file = name.ends_with("f");
    return call == "open" && (is_file || is_shut) ? -EACCES : call == "stat_at" && is_shut ? -EACCES : 0;
  });
  const bool is_there = describe(disk.files, subject, entry);
  disk.files.set_hook({});
  REQUIRE(is_there == !is_shut);
  if (is_shut) return;
  CHECK_FALSE(entry.sha256.has_value());
  CHECK(entry.size_bytes == 3);
  CHECK(entry.mode == 0);
  CHECK(entry.mtime == ports::FileTime{9, 1});
}

TEST_CASE("book__entries_that_nobody_can_look_at__counted_for_the_last_session_of_each_transfer") {
  Disk disk;
  Book book;
  book.begin("one");
  book.on_unlisted();
  book.on_unlisted();
  book.begin("one");
  book.on_unlisted();
  Entry unread = file("a");
  unread.sha256.reset();
  book.on_entry(unread);
  const auto one = book.write(disk.files, "/out/receipt", header(), std::nullopt);
  REQUIRE(one.has_value());
  CHECK(*one == Gaps{1, 1});
  book.begin("two");
  book.on_unlisted();
  CHECK(book.write(disk.files, "/out/receipt", header(), std::nullopt).value() == Gaps{1, 2});
}

TEST_CASE("describe__file_changes_while_it_is_read_or_is_another__no_digest") {
  Disk disk;
  disk.files.put("/tree/f", "abc");
  Subject subject;
  subject.directory = disk.files.open(ports::FileSystem::no_directory, "/tree", {.directory = true}, 0);
  subject.below = "f";
  Entry entry;
  SECTION("it changes") {
    subject.step = [&] { disk.files.put("/tree/f", "abcd"); };
  }
  SECTION("it is another version") {
    subject.is_wanted = [](const ports::FileStat&) { return false; };
  }
  SECTION("whoever asks for it is told to end") {
    subject.stop = [] { return true; };
  }
  SECTION("it cannot be read") {
    disk.files.set_hook([](std::string_view call, std::string_view) { return call == "pread" ? -EIO : 0; });
  }
  REQUIRE(describe(disk.files, subject, entry));
  CHECK_FALSE(entry.sha256.has_value());
  CHECK(entry.size_bytes == 3);
  disk.files.set_hook({});
}

// As a further name does, a new mode changes a file's change time and not its content.
TEST_CASE("describe__file_gets_another_mode_while_it_is_read__read_again_and_not_for_ever") {
  Disk disk;
  disk.files.put("/tree/f", "abc");
  Subject subject;
  subject.directory = disk.files.open(ports::FileSystem::no_directory, "/tree", {.directory = true}, 0);
  subject.below = "f";
  const int other = disk.files.open(subject.directory, "f", {}, 0);
  const int changes = GENERATE(1, 1000);
  int reads = 0;
  subject.step = [&] {
    if (++reads > changes) return;
    disk.world.at(disk.world.now() + std::chrono::seconds(1), [] {});
    disk.world.run_for(std::chrono::seconds(1));
    REQUIRE(disk.files.set_mode(other, 0600u + static_cast<uint32_t>(reads)) == 0);
  };
  Entry entry;
  REQUIRE(describe(disk.files, subject, entry));
  CHECK(entry.sha256.has_value() == (changes == 1));
  CHECK(reads == (changes == 1 ? 2 : 4));
  CHECK(entry.mode == 0600u + static_cast<uint32_t>(reads) - 1);
  disk.files.close(other);
}

TEST_CASE("signature__of_each_kind_of_bytes__checked_and_bound_to_its_purpose") {
  const trust::Identity identity = trust::Identity::generate().value();
  const trust::Signature signature = trust::sign(identity, "a purpose", as_bytes("data"));
  const auto signer = trust::check_signature(signature, "a purpose", as_bytes("data"));
  REQUIRE(signer.has_value());
  CHECK(*signer == identity.id());
  CHECK_FALSE(trust::check_signature(signature, "another", as_bytes("data")).has_value());
  CHECK_FALSE(trust::check_signature(signature, "a purpose", as_bytes("date")).has_value());
  CHECK_FALSE(trust::check_signature({signature.public_key, ""}, "a purpose", as_bytes("data")).has_value());
  CHECK_FALSE(trust::check_signature({"", signature.value}, "a purpose", as_bytes("data")).has_value());
  CHECK_FALSE(trust::check_signature({signature.public_key + "x", signature.value}, "a purpose", as_bytes("data")).has_value());
  for (const std::string bytes : {"", "a", "ab", "abc", "\xff\xfe\0x"})
    CHECK(trust::from_base64(trust::base64(bytes)).value() == bytes);
  for (const char* text : {"a", "a===", "YQ=", "YR==", "YQ==YQ==", "====", "Y Q="})
    CHECK_FALSE(trust::from_base64(text).has_value());
}

}  // namespace ccixfer::receipt
