// Entries: bytes by hand, round trips with prefix compression, bounds, and the paths that must never be believed.
#include "app/session/entry.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <random>

#include "app/session/limits.h"
#include "core/wire/cursor.h"

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
  CHECK(a.is_linked == b.is_linked);
  CHECK(a.linked_to == b.linked_to);
  CHECK((a.special == b.special && a.special_device == b.special_device));
  CHECK((a.user == b.user && a.group == b.group));
  CHECK((a.has_extended == b.has_extended && a.extended == b.extended));
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

struct RawTlv {
  unsigned type = 0;
  std::string_view value;
};
// Gives an entry without TLVs this list, as a peer would write it.
std::vector<std::byte> with_tlvs(std::vector<std::byte> entry, const std::vector<RawTlv>& tlvs) {
  entry[1] |= std::byte{1};
  const size_t length_at = entry.size();
  wire::Writer out(entry);
  out.u32(0);
  for (const RawTlv& tlv : tlvs) {
    out.u16(static_cast<uint16_t>(tlv.type));
    out.bytes32(as_bytes(tlv.value));
  }
  out.patch_u32(length_at, static_cast<uint32_t>(entry.size() - length_at - 4));
  return entry;
}
constexpr unsigned target_type = 0x8001, digest_type = 2, name_type = 0x8003;

std::vector<std::byte> hostile_of(EntryType type) {
  std::vector<std::byte> bytes = hostile("x");
  bytes[0] = static_cast<std::byte>(type);
  if (type == EntryType::leave) bytes.resize(7);
  if (type == EntryType::directory || type == EntryType::symlink) bytes.resize(bytes.size() - 16);  // no size and no version
  return bytes;
}

}  // namespace

TEST_CASE("entry__symbolic_link__is_the_bytes_written_by_hand") {
  std::vector<std::byte> buffer(256);
  EntryEncoder encoder(buffer);
  Entry link = file("");
  link.type = EntryType::symlink;
  link.target = "to";
  link.name = "n";
  REQUIRE(encoder.add(link));
  const unsigned char expected[] = {2,    1,    0,    0,    0,    0,    0xa4, 0x01, 0xe8, 3,    0,    0,    0xe9, 3, 0,  0,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc9, 0x9a, 0x3b, 15,   0, 0,  0,
                                    1,    0x80, 2,    0,    0,    0,    't',  'o',  3,    0x80, 1,    0,    0,    0, 'n'};
  REQUIRE(encoder.size_bytes() == sizeof expected);
  CHECK(std::memcmp(buffer.data(), expected, sizeof expected) == 0);
}

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
    std::vector<std::byte> nameless = hostile("");
    nameless[0] = static_cast<std::byte>(entry.type);
    if (entry.type == EntryType::symlink) nameless.resize(nameless.size() - 16);
    const auto named = [&](std::string_view name) {
      std::vector<RawTlv> tlvs;
      if (entry.type == EntryType::symlink) tlvs.push_back({target_type, "t"});
      tlvs.push_back({name_type, name});
      return decode_entries(with_tlvs(nameless, tlvs), 1);
    };
    CHECK(named("ab").value().front().name == "ab");
    CHECK(named("").value().front().name.empty());
    using namespace std::string_view_literals;
    for (const std::string_view name : {"/ab"sv, "a/b"sv, ".."sv, "."sv, "a\0b"sv}) {
      CHECK(named(name).error().kind == ErrorKind::not_authorised);
    }
    CHECK(named(std::string(path_bytes_max + 1, 'n')).error().kind == ErrorKind::protocol);
  }
  // Of what has a path, or is a directory, no name is taken.
  std::vector<std::byte> directory = hostile("");
  directory[0] = static_cast<std::byte>(EntryType::directory);
  directory.resize(directory.size() - 16);
  CHECK(decode_entries(with_tlvs(directory, {}), 1));
  CHECK(decode_entries(with_tlvs(directory, {{name_type, "n"}}), 1).error().kind == ErrorKind::protocol);
  CHECK(decode_entries(with_tlvs(hostile("p"), {{name_type, "n"}}), 1).error().kind == ErrorKind::protocol);
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

TEST_CASE("entry__unknown_type_flag_or_mode__is_refused") {
  std::vector<std::byte> type = hostile("x");
  type[0] = std::byte{4};
  CHECK(!decode_entries(type, 1));
  std::vector<std::byte> flag = hostile("x");
  flag[1] = std::byte{2};
  CHECK(!decode_entries(flag, 1));
  std::vector<std::byte> mode = hostile("x");
  mode[8] = std::byte{0x10};  // 010000: not a permission bit
  CHECK(!decode_entries(mode, 1));
}

TEST_CASE("entry__unknown_optional_tlv__is_skipped_and_not_kept") {
  const std::vector<RawTlv> more{{17, "xy"}, {0x7fff, ""}};
  for (const EntryType type : {EntryType::file, EntryType::directory, EntryType::leave}) {
    const auto entries = decode_entries(with_tlvs(hostile_of(type), more), 1);
    REQUIRE(entries);
    CHECK(entries->front().path == "x");
    CHECK(entries->front().unknown_mandatory == 0);
    std::vector<std::byte> buffer(256);
    EntryEncoder encoder(buffer);
    REQUIRE(encoder.add(entries->front()));
    CHECK(buffer[1] == std::byte{0});  // no TLVs
  }
}

TEST_CASE("entry__unknown_mandatory_tlv__is_told_of_that_entry_alone") {
  for (const EntryType type : {EntryType::file, EntryType::directory, EntryType::symlink, EntryType::leave}) {
    std::vector<std::byte> bytes = with_tlvs(hostile_of(type), {{17, "xy"}, {0x8018, "z"}, {0x8019, ""}});
    const std::vector<std::byte> next = hostile("y");
    bytes.insert(bytes.end(), next.begin(), next.end());
    const auto entries = decode_entries(bytes, 2);
    REQUIRE(entries);  // a link too, whose target may stand there
    CHECK(entries->at(0).path == "x");
    CHECK(entries->at(0).unknown_mandatory == 0x8018);
    CHECK(entries->at(1).path == "y");
    CHECK(entries->at(1).unknown_mandatory == 0);
  }
}

TEST_CASE("entry__known_numbers_with_the_other_mandatory_bit__are_unknown_types") {
  const auto optional_target = with_tlvs(hostile_of(EntryType::symlink), {{target_type & 0x7fff, "t"}});
  CHECK_FALSE(decode_entries(optional_target, 1));  // a link without a target
  const auto mandatory_digest = decode_entries(with_tlvs(hostile("x"), {{digest_type | 0x8000, std::string(16, 'd')}}), 1);
  REQUIRE(mandatory_digest);
  CHECK_FALSE(mandatory_digest->front().has_digest);
  CHECK(mandatory_digest->front().unknown_mandatory == (digest_type | 0x8000));
}

TEST_CASE("entry__a_list_of_tlvs_that_is_malformed_or_too_long__is_refused") {
  CHECK(decode_entries(with_tlvs(hostile("x"), {{17, ""}, {18, ""}}), 1));
  CHECK_FALSE(decode_entries(with_tlvs(hostile("x"), {{18, ""}, {17, ""}}), 1));
  std::vector<std::byte> cut_short = with_tlvs(hostile("x"), {{17, "xy"}});
  cut_short[cut_short.size() - 6] = std::byte{3};  // the value is longer than what is there
  CHECK_FALSE(decode_entries(cut_short, 1));
  const std::string longest(entry_tlv_bytes_max - 6, 'v');
  CHECK(decode_entries(with_tlvs(hostile("x"), {{17, longest}}), 1));
  CHECK_FALSE(decode_entries(with_tlvs(hostile("x"), {{17, longest + "v"}}), 1));
}

TEST_CASE("entry__a_digest__is_sixteen_bytes_of_a_file") {
  using namespace std::string_view_literals;
  constexpr std::string_view digest = "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"sv;
  const auto of_file = decode_entries(with_tlvs(hostile("x"), {{digest_type, digest}}), 1);
  REQUIRE(of_file);
  CHECK(of_file->front().has_digest);
  CHECK(of_file->front().digest == Hash128{1, 2});
  CHECK_FALSE(decode_entries(with_tlvs(hostile("x"), {{digest_type, digest.substr(1)}}), 1));
  CHECK_FALSE(decode_entries(with_tlvs(hostile("x"), {{digest_type, std::string(digest) + "x"}}), 1));
  CHECK_FALSE(decode_entries(with_tlvs(hostile_of(EntryType::directory), {{digest_type, digest}}), 1));
  CHECK_FALSE(decode_entries(with_tlvs(hostile_of(EntryType::symlink), {{target_type, "t"}, {digest_type, digest}}), 1));
  CHECK_FALSE(decode_entries(with_tlvs(hostile_of(EntryType::leave), {{digest_type, digest}}), 1));
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
    return decode_entries(with_tlvs(hostile_of(EntryType::symlink), {{target_type, target}}), 1);
  };
  const auto good = link("to");
  REQUIRE(good);
  CHECK(good->front().target == "to");
  CHECK(link(std::string(path_bytes_max, 't')));
  CHECK(!link(std::string(path_bytes_max + 1, 't')));
  CHECK(!link(""));
  CHECK(!link(std::string_view("t\0o", 3)));
  CHECK(!decode_entries(hostile_of(EntryType::symlink), 1));
  CHECK(!decode_entries(with_tlvs(hostile("x"), {{target_type, "to"}}), 1));  // of a file
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

// As a peer may write them: with TLVs that mean nothing to us, entries are as long as these need to be.
TEST_CASE("entries__as_many_bytes_as_a_segment_may_have__are_read_and_one_more_is_not") {
  const std::vector<std::byte> shortest = with_tlvs(hostile(""), {{17, ""}});
  const size_t value_bytes_max = entry_tlv_bytes_max - 6;
  for (const size_t more : {0u, 1u}) {
    std::vector<std::byte> data;
    uint32_t count = 0;
    const size_t wanted = segment_bytes_max + more;
    while (data.size() < wanted) {
      size_t value_bytes = wanted - data.size() - shortest.size();
      // What is left afterwards must not be too short for an entry.
      if (value_bytes > value_bytes_max) value_bytes = std::min(value_bytes_max, value_bytes - shortest.size());
      const std::vector<std::byte> entry = with_tlvs(hostile(""), {{17, std::string(value_bytes, 'v')}});
      data.insert(data.end(), entry.begin(), entry.end());
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

TEST_CASE("entry__links_specials_owners_and_attributes__come_as_they_were_sent") {
  const std::string acl("\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x04\0\x04\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff", 28);
  std::vector<Entry> sent{file("a"), file("b"), file("c"), file("d")};
  sent[0].is_linked = true;
  sent[0].user = "somebody";
  sent[0].group = "some group";
  sent[1].is_linked = true;
  sent[1].linked_to = "a";
  sent[1].has_extended = true;
  sent[2].has_extended = true;
  sent[2].extended = {{"system.posix_acl_access", acl}, {"user.empty", ""}, {"user.x", std::string("\0\xff", 2)}};
  sent[3].type = EntryType::device;
  sent[3].size_bytes = sent[3].version = 0;
  sent[3].special = ports::SpecialKind::block;
  sent[3].special_device = 0x123456789abc;
  std::vector<std::byte> data(entries_segment_bytes);
  EntryEncoder encoder(data);
  for (const Entry& entry : sent) REQUIRE(encoder.add(entry));
  const auto got = decode_entries(Bytes(data).first(encoder.size_bytes()), encoder.count());
  REQUIRE(got);
  for (size_t i = 0; i < sent.size(); ++i) check_same((*got)[i], sent[i]);
}
