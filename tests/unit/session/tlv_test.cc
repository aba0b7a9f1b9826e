// TLVs: bytes by hand, what a reader skips, what it has to refuse, and lists that are no lists.
#include "app/session/tlv.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace ccixfer;
using namespace ccixfer::session;

namespace {

using Types = std::vector<uint16_t>;

std::vector<std::byte> bytes_of(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// TLVs without values.
std::vector<std::byte> list_of(const Types& types) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  for (const uint16_t type : types) {
    out.u16(type);
    out.u32(0);
  }
  return bytes;
}

// What a reader makes of a list of which it knows no type.
struct Skipped {
  explicit Skipped(const std::vector<std::byte>& list) {
    TlvReader reader(list);
    while (const std::optional<Tlv> tlv = reader.next()) {
      types.push_back(tlv->type);
      reader.skip(*tlv);
    }
    ok = reader.ok();
    unknown_mandatory = reader.unknown_mandatory();
  }
  Types types;
  bool ok = false;
  uint16_t unknown_mandatory = 0;
};

}  // namespace

TEST_CASE("tlv__written__is_the_bytes_written_by_hand") {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  TlvWriter tlvs(out);
  tlvs.add(tlv_mandatory | 1, as_bytes("ab"));
  tlvs.add(2, {});
  tlvs.begin(0x0103, 4).u32(0x0a0b0c0d);
  CHECK(bytes == bytes_of({1, 0x80, 2, 0, 0, 0, 'a', 'b', 2, 0, 0, 0, 0, 0, 3, 1, 4, 0, 0, 0, 0x0d, 0x0c, 0x0b, 0x0a}));
  TlvReader reader(bytes);
  const std::optional<Tlv> first = reader.next();
  REQUIRE(first);
  CHECK(first->type == (tlv_mandatory | 1));
  CHECK(as_text(first->value) == "ab");
  const std::optional<Tlv> second = reader.next();
  REQUIRE(second);
  CHECK(second->type == 2);
  CHECK(second->value.empty());
  const std::optional<Tlv> third = reader.next();
  REQUIRE(third);
  CHECK(third->value.size() == 4);
  CHECK_FALSE(reader.next());
  CHECK(reader.ok());
  CHECK(reader.unknown_mandatory() == 0);
}

TEST_CASE("tlv__written_where_there_is_no_room__the_writer_is_not_ok") {
  std::vector<std::byte> bytes(7);
  wire::Writer out{MutableBytes(bytes)};
  TlvWriter(out).add(1, as_bytes("ab"));
  CHECK_FALSE(out.ok());
}

TEST_CASE("tlv__empty_list__has_nothing_and_is_a_list") {
  const Skipped empty({});
  CHECK(empty.ok);
  CHECK(empty.types.empty());
}

TEST_CASE("tlv__unknown_types__the_first_mandatory_one_is_told") {
  const Skipped optional(list_of({1, 7, 0x7fff}));
  CHECK(optional.ok);
  CHECK(optional.types == Types{1, 7, 0x7fff});
  CHECK(optional.unknown_mandatory == 0);
  const Skipped mixed(list_of({1, 0x8002, 3, 0x8004}));
  CHECK(mixed.ok);
  CHECK(mixed.types.size() == 4);
  CHECK(mixed.unknown_mandatory == 0x8002);
}

TEST_CASE("tlv__numbers_that_do_not_ascend__are_refused") {
  for (const Types& types : {Types{0}, Types{0x8000}, Types{1, 1}, Types{2, 1}, Types{1, 0x8001}, Types{0x8002, 1}}) {
    const Skipped bad(list_of(types));
    CHECK_FALSE(bad.ok);
    CHECK(bad.types.size() == types.size() - 1);  // nothing of the bad one
  }
  CHECK(Skipped(list_of({0x8001, 2, 0x8003})).ok);
}

TEST_CASE("tlv__cut_short_or_longer_than_the_list__is_refused") {
  const std::vector<std::byte> whole = bytes_of({1, 0, 2, 0, 0, 0, 'a', 'b'});
  CHECK(Skipped(whole).ok);
  for (size_t length = 1; length < whole.size(); ++length) {
    const Skipped cut_short({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    CHECK_FALSE(cut_short.ok);
    CHECK(cut_short.types.empty());
  }
  CHECK_FALSE(Skipped(bytes_of({1, 0, 0xff, 0xff, 0xff, 0xff, 'a', 'b'})).ok);
}

TEST_CASE("tlv__as_many_as_a_list_may_have__are_read_and_one_more_is_not") {
  Types types;
  for (uint16_t number = 1; number <= tlvs_max; ++number) types.push_back(number);
  CHECK(Skipped(list_of(types)).types == types);
  CHECK(Skipped(list_of(types)).ok);
  types.push_back(static_cast<uint16_t>(tlvs_max + 1));
  CHECK_FALSE(Skipped(list_of(types)).ok);
}

TEST_CASE("tlv__words_of_an_unknown_one__name_its_number_and_what_to_do") {
  CHECK(words_of_unknown("hello", tlv_mandatory | 9) ==
        "the version of the accepting side does not know field 9 of the hello: run the same version at both ends");
}
