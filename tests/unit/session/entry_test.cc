// Entries: bytes by hand, round trips with prefix compression, bounds, and the paths that must never be believed.
#include "app/session/entry.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <random>

#include "app/session/limits.h"

using namespace ccixfer;
using namespace ccixfer::session;

namespace {

Entry file(std::string path, uint64_t size_bytes = 5) {
  Entry entry;
  entry.path = std::move(path);
  entry.mode = 0644;
  entry.uid = 1000;
  entry.gid = 1001;
  entry.size_bytes = size_bytes;
  entry.mtime = {-1, 0x3b9ac9ff};
  entry.version = 0x1122334455667788;
  return entry;
}

void check_same(const Entry& a, const Entry& b) {
  CHECK(a.type == b.type);
  CHECK(a.path == b.path);
  CHECK(a.name == b.name);
  CHECK(a.mode == b.mode);
  CHECK(a.uid == b.uid);
  CHECK(a.gid == b.gid);
  CHECK(a.size_bytes == b.size_bytes);
  CHECK(a.mtime == b.mtime);
  CHECK(a.version == b.version);
  CHECK(a.target == b.target);
  CHECK(a.has_digest == b.has_digest);
  CHECK(a.digest == b.digest);
}

// One file entry whose path is `path`, as a peer that means harm would write it.
std::vector<std::byte> hostile(std::string_view path) {
  std::vector<std::byte> bytes;
  const auto u8 = [&](unsigned value) { bytes.push_back(static_cast<std::byte>(value)); };
  u8(0), u8(0);
  u8(0), u8(0);
  u8(static_cast<unsigned>(path.size() & 0xff)), u8(static_cast<unsigned>(path.size() >> 8));
  for (const char c : path) u8(static_cast<unsigned char>(c));
  for (int i = 0; i < 2 + 4 + 4 + 8 + 4 + 8 + 8; ++i) u8(0);
  return bytes;
}

}  // namespace

TEST_CASE("entry__file__is_the_bytes_written_by_hand") {
  std::vector<std::byte> buffer(256);
  EntryEncoder encoder(buffer);
  REQUIRE(encoder.add(file("ab")));
  const unsigned char expected[] = {0, 0, 0,    0,    2,    0,    'a',  'b',  0xa4, 0x01, 0xe8, 3,    0,    0,    0xe9, 3,
                                    0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc9, 0x9a, 0x3b, 5,    0,
                                    0, 0, 0,    0,    0,    0,    0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  REQUIRE(encoder.size_bytes() == sizeof expected);
  CHECK(std::memcmp(buffer.data(), expected, sizeof expected) == 0);
}

TEST_CASE("entry__own_name__travels_with_a_file_or_link_without_a_path_and_is_one_name") {
  std::vector<std::byte> buffer(512);
  Entry one = file("");
  one.name = "own";
  one.has_digest = true;
  one.digest = {1, 2};
  Entry link = one;
  link.type = EntryType::symlink;
  link.target = "t";
  link.has_digest = false;
  link.digest = {};
  link.size_bytes = link.version = 0;
  for (const Entry& entry : {one, link}) {
    EntryEncoder encoder(buffer);
    REQUIRE(encoder.add(entry));
    const Bytes bytes = Bytes(buffer).first(encoder.size_bytes());
    const auto decoded = decode_entries(bytes, 1);
    REQUIRE(decoded);
    check_same(decoded->front(), entry);
    // As a peer that means harm would write it.
    Entry nameless = entry;
    nameless.name.clear();
    EntryEncoder plain(buffer);
    REQUIRE(plain.add(nameless));
    const std::vector<std::byte> head(buffer.begin(), buffer.begin() + plain.size_bytes());
    const auto named = [&head](std::string_view name) {
      std::vector<std::byte> bad = head;
      bad[1] |= std::byte{2};
      const auto add = [&bad](size_t value) { bad.push_back(static_cast<std::byte>(value)); };
      add(name.size() + 3), add(0), add(1), add(name.size()), add(0);
      for (const char c : name) add(static_cast<unsigned char>(c));
      return decode_entries(bad, 1);
    };
    CHECK(named("ab").value().front().name == "ab");
    CHECK(named("").value().front().name.empty());
    using namespace std::string_view_literals;
    for (const std::string_view name : {"/ab"sv, "a/b"sv, ".."sv, "."sv, "a\0b"sv}) {
      CHECK(named(name).error().kind == ErrorKind::not_authorised);
    }
  }
  // Of what has a path, or is a directory, no name is taken.
  EntryEncoder encoder(buffer);
  REQUIRE(encoder.add(one));
  std::vector<std::byte> directory(buffer.begin(), buffer.begin() + encoder.size_bytes());
  directory[0] = std::byte{1};
  CHECK(decode_entries(directory, 1).error().kind == ErrorKind::protocol);
  Entry with_path = file("p");
  EntryEncoder plain(buffer);
  REQUIRE(plain.add(with_path));
  std::vector<std::byte> named(buffer.begin(), buffer.begin() + plain.size_bytes());
  named[1] |= std::byte{2};
  for (const unsigned byte : {4u, 0u, 1u, 1u, 0u, unsigned{'n'}}) named.push_back(static_cast<std::byte>(byte));
  CHECK(decode_entries(named, 1).error().kind == ErrorKind::protocol);
}

TEST_CASE("entry__times_of_any_year__come_back_as_they_went") {
  std::mt19937_64 random(3);
  std::vector<std::byte> buffer(entries_segment_bytes);
  EntryEncoder encoder(buffer);
  std::vector<Entry> entries;
  for (int i = 0; i < 500; ++i) {
    Entry entry = file("f" + std::to_string(i));
    entry.mtime = {static_cast<int64_t>(random()) >> (random() % 64),
                   static_cast<uint32_t>(random() % ports::file_time_nanoseconds)};
    entries.push_back(entry);
    REQUIRE(encoder.add(entry));
  }
  const auto decoded = decode_entries(Bytes(buffer).first(encoder.size_bytes()), encoder.count());
  REQUIRE(decoded);
  for (size_t i = 0; i < entries.size(); ++i) check_same((*decoded)[i], entries[i]);
}

TEST_CASE("entry__nanoseconds_of_a_second_or_more__are_refused") {
  std::vector<std::byte> buffer(256);
  EntryEncoder encoder(buffer);
  REQUIRE(encoder.add(file("ab")));
  REQUIRE(decode_entries(Bytes(buffer).first(encoder.size_bytes()), 1));
  buffer[26] = std::byte{0};  // 1,000,000,000
  buffer[27] = std::byte{0xca};
  CHECK_FALSE(decode_entries(Bytes(buffer).first(encoder.size_bytes()), 1));
}

TEST_CASE("entry__every_type__comes_back_as_it_went") {
  std::vector<Entry> entries;
  entries.push_back(file(""));
  Entry directory = file("d", 0);
  directory.type = EntryType::directory;
  directory.version = 0;
  directory.mode = 07777;
  entries.push_back(directory);
  entries.push_back(file("d/a\x1b\xff\n", std::numeric_limits<uint64_t>::max()));
  entries.back().has_digest = true;
  entries.back().digest = {1, 2};
  entries.back().mtime = {std::numeric_limits<int64_t>::min(), 0};
  entries.push_back(file("d/a2"));
  entries.back().mtime = {std::numeric_limits<int64_t>::max(), 999'999'999};
  Entry link = file("d/ab", 0);
  link.type = EntryType::symlink;
  link.version = 0;
  link.target = "../../anywhere";
  entries.push_back(link);
  Entry leave;
  leave.type = EntryType::leave;
  leave.path = "d";
  entries.push_back(leave);
  entries.push_back(file(std::string(path_bytes_max, 'x')));

  std::vector<std::byte> buffer(entries_segment_bytes);
  EntryEncoder encoder(buffer);
  for (const Entry& entry : entries) REQUIRE(encoder.add(entry));
  const Bytes data = Bytes(buffer).first(encoder.size_bytes());
  const Result<std::vector<Entry>> decoded = decode_entries(data, encoder.count());
  REQUIRE(decoded);
  REQUIRE(decoded->size() == entries.size());
  for (size_t i = 0; i < entries.size(); ++i) check_same((*decoded)[i], entries[i]);

  for (size_t cut_at = 0; cut_at < data.size(); ++cut_at) REQUIRE(!decode_entries(data.first(cut_at), encoder.count()));
  CHECK(!decode_entries(data, encoder.count() - 1));
  CHECK(!decode_entries(data, encoder.count() + 1));
  CHECK(!decode_entries(data, entries_per_segment_max + 1));
  CHECK(!decode_entries(data, std::numeric_limits<uint32_t>::max()));
}

TEST_CASE("entry_encoder__no_room__adds_nothing_and_says_so") {
  std::vector<std::byte> buffer(100);
  EntryEncoder encoder(buffer);
  uint32_t added = 0;
  while (encoder.add(file("name" + std::to_string(added)))) ++added;
  CHECK(added == encoder.count());
  CHECK(encoder.size_bytes() <= buffer.size());
  const Result<std::vector<Entry>> decoded = decode_entries(Bytes(buffer).first(encoder.size_bytes()), encoder.count());
  REQUIRE(decoded);
  CHECK(decoded->back().path == "name" + std::to_string(added - 1));
}

TEST_CASE("entry_encoder__entries_per_segment_max__is_kept") {
  std::vector<std::byte> buffer(1u << 20);
  EntryEncoder encoder(buffer);
  uint32_t added = 0;
  while (encoder.add(file(std::to_string(added)))) ++added;
  CHECK(added == entries_per_segment_max);
  CHECK(decode_entries(Bytes(buffer).first(encoder.size_bytes()), added));
}

TEST_CASE("path__of_the_bad_input_list__is_refused") {
  using namespace std::string_view_literals;
  for (const std::string_view path : {"../x"sv, "/x"sv, "a/../../x"sv, "a/../x"sv, ".."sv, "."sv, "./x"sv, "a/."sv, "a/.."sv,
                                      "a/./b"sv, "a//b"sv, "a/"sv, "/"sv, "//"sv, "a\0b"sv, "\0"sv, "a/\0"sv, "..\0"sv}) {
    INFO(std::string(path));
    CHECK(!is_safe_relative_path(path));
    const std::vector<std::byte> bytes = hostile(path);
    const Result<std::vector<Entry>> decoded = decode_entries(bytes, 1);
    REQUIRE(!decoded);
    CHECK(decoded.error().kind == ErrorKind::not_authorised);
  }
  CHECK(!is_safe_relative_path(std::string(path_bytes_max + 1, 'x')));
  CHECK(!decode_entries(hostile(std::string(path_bytes_max + 1, 'x')), 1));
}

TEST_CASE("path__odd_but_inside_the_root__is_accepted") {
  for (const std::string& path :
       {std::string(), std::string("..."), std::string("..a"), std::string("a../b"), std::string(".hidden"), std::string("a\nb"),
        std::string("\x1b[31m"), std::string("\x9b"), std::string(256, 'c'), std::string("\\..\\x"), std::string("a\\..\\b")}) {
    INFO(path);
    CHECK(is_safe_relative_path(path));
    CHECK(decode_entries(hostile(path), 1));
  }
  std::string deep = "d";
  while (deep.size() + 2 <= path_bytes_max) deep += "/d";
  CHECK(is_safe_relative_path(deep));
}

TEST_CASE("entry__prefix_that_the_path_before_does_not_have__is_refused") {
  std::vector<std::byte> bytes = hostile("x");
  bytes[2] = std::byte{1};  // shares one byte with a path that was not there
  const Result<std::vector<Entry>> decoded = decode_entries(bytes, 1);
  REQUIRE(!decoded);
  CHECK(decoded.error().kind == ErrorKind::protocol);
}

TEST_CASE("entry__prefix_makes_a_path_that_leaves_the_root__is_refused") {
  std::vector<std::byte> bytes = hostile("a/b");
  std::vector<std::byte> second = hostile("../x");
  second[2] = std::byte{2};  // "a/" + "../x"
  bytes.insert(bytes.end(), second.begin(), second.end());
  const Result<std::vector<Entry>> decoded = decode_entries(bytes, 2);
  REQUIRE(!decoded);
  CHECK(decoded.error().kind == ErrorKind::not_authorised);
}

TEST_CASE("entry__unknown_type_flag_mode_or_mandatory_extension__is_refused_an_optional_one_skipped") {
  std::vector<std::byte> type = hostile("x");
  type[0] = std::byte{4};
  CHECK(!decode_entries(type, 1));
  std::vector<std::byte> flag = hostile("x");
  flag[1] = std::byte{4};
  CHECK(!decode_entries(flag, 1));
  std::vector<std::byte> mode = hostile("x");
  mode[8] = std::byte{0x10};  // 010000: not a permission bit
  CHECK(!decode_entries(mode, 1));
  for (const unsigned tlv_type : {0x02u, 0x82u}) {
    std::vector<std::byte> extended = hostile("x");
    extended[1] = std::byte{2};
    for (const unsigned byte : {5u, 0u, tlv_type, 2u, 0u, 0xaau, 0xbbu}) extended.push_back(static_cast<std::byte>(byte));
    CHECK(static_cast<bool>(decode_entries(extended, 1)) == (tlv_type == 0x02u));
    extended[extended.size() - 4] = std::byte{3};  // the value is longer than what is there
    CHECK(!decode_entries(extended, 1));
  }
}

TEST_CASE("entry__a_digest_of_what_is_no_file__is_refused") {
  for (const EntryType type : {EntryType::file, EntryType::directory, EntryType::symlink}) {
    std::vector<std::byte> bytes = hostile("x");
    bytes[0] = static_cast<std::byte>(type);
    bytes[1] = std::byte{1};
    if (type != EntryType::file) bytes.resize(bytes.size() - 16);  // no size and no version
    bytes.insert(bytes.end(), 16, std::byte{7});
    if (type == EntryType::symlink) bytes.insert(bytes.end(), {std::byte{1}, std::byte{0}, std::byte{'t'}});
    CHECK(static_cast<bool>(decode_entries(bytes, 1)) == (type == EntryType::file));
  }
}

TEST_CASE("entry__prefix_and_rest_longer_than_a_path__is_refused") {
  const std::string longest(path_bytes_max, 'x');
  for (const size_t rest : {size_t{1}, size_t{2}}) {
    std::vector<std::byte> bytes = hostile(longest);
    std::vector<std::byte> second = hostile(std::string(rest, 'y'));
    second[2] = static_cast<std::byte>((path_bytes_max - 1) & 0xff);
    second[3] = static_cast<std::byte>((path_bytes_max - 1) >> 8);
    bytes.insert(bytes.end(), second.begin(), second.end());
    const auto decoded = decode_entries(bytes, 2);
    REQUIRE(static_cast<bool>(decoded) == (rest == 1));
    if (decoded) CHECK(decoded->back().path == longest.substr(1) + "y");
  }
}

TEST_CASE("entry__symbolic_link_to_nothing_or_with_a_zero_in_its_target__is_refused") {
  const auto link = [](std::string_view target) {
    std::vector<std::byte> bytes = hostile("x");
    bytes[0] = static_cast<std::byte>(EntryType::symlink);
    bytes.resize(bytes.size() - 16);  // no size and no version
    bytes.push_back(static_cast<std::byte>(target.size()));
    bytes.push_back(std::byte{0});
    for (const char c : target) bytes.push_back(static_cast<std::byte>(c));
    return decode_entries(bytes, 1);
  };
  const auto good = link("to");
  REQUIRE(good);
  CHECK(good->front().target == "to");
  CHECK(!link(""));
  CHECK(!link(std::string_view("t\0o", 3)));
}

TEST_CASE("file_digest__pieces__is_the_hash_of_their_hashes_in_order") {
  CHECK(file_digest({}) == xxh3_128({}));
  unsigned char concatenated[32] = {};
  concatenated[0] = 1;
  concatenated[8] = 2;
  concatenated[16] = 3;
  concatenated[24] = 4;
  CHECK(file_digest({{1, 2}, {3, 4}}) == xxh3_128(std::as_bytes(std::span(concatenated))));
  CHECK(file_digest({{1, 2}, {3, 4}}) != file_digest({{3, 4}, {1, 2}}));
}

// As a peer may write them: with extensions that mean nothing to us, entries are as long as these need to be.
TEST_CASE("entries__as_many_bytes_as_a_segment_may_have__are_read_and_one_more_is_not") {
  const size_t bare = hostile("").size() + 2;
  for (const size_t more : {0u, 1u}) {
    std::vector<std::byte> data;
    uint32_t count = 0;
    const auto u16 = [&](size_t number) {
      data.push_back(static_cast<std::byte>(number & 0xff));
      data.push_back(static_cast<std::byte>(number >> 8));
    };
    const size_t wanted = segment_bytes_max + more;
    while (data.size() < wanted) {
      std::vector<std::byte> entry = hostile("");
      entry[1] = std::byte{2};  // has extensions
      data.insert(data.end(), entry.begin(), entry.end());
      size_t left = wanted - data.size() - 2;
      if (left > 60000) left = std::min<size_t>(60000, left - 2 * bare);  // no rest that would be too short for an entry
      u16(left);
      while (left > 0) {
        size_t value = left - 3;
        if (value > 4000) value = std::min<size_t>(4000, value - 100);
        data.push_back(std::byte{9});  // a type that nobody knows
        u16(value);
        data.resize(data.size() + value);
        left -= 3 + value;
      }
      ++count;
    }
    REQUIRE(data.size() == wanted);
    REQUIRE(count <= entries_per_segment_max);
    const auto entries = decode_entries(data, count);
    REQUIRE(entries.has_value() == (more == 0));
    if (entries) {
      CHECK(entries->size() == count);
    } else {
      CHECK(entries.error().message == "entries: too many in a segment");
    }
  }
}

TEST_CASE("entries__as_many_as_a_segment_may_have__are_read_and_one_more_is_not") {
  std::vector<std::byte> data;
  for (uint32_t i = 0; i <= entries_per_segment_max; ++i) {
    const std::vector<std::byte> entry = hostile("");
    data.insert(data.end(), entry.begin(), entry.end());
  }
  const size_t one = data.size() / (entries_per_segment_max + 1);
  const auto all = decode_entries(Bytes(data).first(data.size() - one), entries_per_segment_max);
  REQUIRE(all);
  CHECK(all->size() == entries_per_segment_max);
  CHECK_FALSE(decode_entries(data, entries_per_segment_max + 1));
  CHECK_FALSE(decode_entries(data, entries_per_segment_max));  // something is behind them
  CHECK_FALSE(decode_entries(Bytes(data).first(data.size() - one), entries_per_segment_max - 1));
}
