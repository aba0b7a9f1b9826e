// Open: bytes by hand, parts put together, and what a peer may send instead.
#include "app/session/open.h"

#include <catch2/catch.hpp>

#include "app/session/control.h"
#include "app/session/limits.h"
#include "app/session/message_wire.h"

using namespace ccixfer;
using namespace ccixfer::session;

namespace {

using namespace std::string_view_literals;

OpenPart whole_part(std::string_view bytes) { return {static_cast<uint32_t>(bytes.size()), 0, std::string(bytes)}; }

// An Open of one part, as a peer may write it; nullopt: it is malformed.
std::optional<Open> joined(std::string_view bytes) {
  OpenJoiner joiner;
  std::optional<Open> open = joiner.add(whole_part(bytes));
  CHECK(joiner.failed() == !open);
  return open;
}

}  // namespace

TEST_CASE("open__with_a_path__is_the_bytes_written_by_hand") {
  const std::vector<Message> parts = cut(Open{0x0805, "a/b"});
  REQUIRE(parts.size() == 1);
  const auto& part = std::get<OpenPart>(parts.front());
  CHECK(part.bytes == "\5\x8\0\0\1\x80\3\0\0\0a/b"sv);
  CHECK(part.total_bytes == part.bytes.size());
  CHECK(part.offset_bytes == 0);
}

TEST_CASE("open__a_team__comes_back_as_it_went_and_has_bounds") {
  Open open{option_recursive, "a"};
  open.is_second = true;
  open.team = TeamWish{{1, 2, 3}, 77, 4, 9, 0x1234567890, "0.1.0"};
  const auto back = [](const Open& sent) {
    OpenJoiner joiner;
    std::optional<Open> whole;
    for (const Message& part : cut(sent)) whole = joiner.add(std::get<OpenPart>(part));
    return whole;
  };
  const std::optional<Open> same = back(open);
  REQUIRE(same);
  REQUIRE(same->team);
  CHECK(same->is_second);
  CHECK(same->team->name == open.team->name);
  CHECK(same->team->member == 77);
  CHECK(same->team->part == 4);
  CHECK(same->team->parts == 9);
  CHECK(same->team->agreement == 0x1234567890);
  CHECK(same->team->version == "0.1.0");
  open.team->part = 0;
  CHECK(!back(open));
  open.team->part = 10;  // of nine
  CHECK(!back(open));
  open.team->part = 1;
  open.team->parts = team_parts_max + 1;
  CHECK(!back(open));
  open.team->parts = 1;
  open.team->version = std::string(team_version_bytes_max + 1, '1');
  CHECK(!back(open));
}

TEST_CASE("open__without_a_path__has_no_tlv") {
  const std::vector<Message> parts = cut(Open{1, ""});
  REQUIRE(parts.size() == 1);
  CHECK(std::get<OpenPart>(parts.front()).bytes == "\1\0\0\0"sv);
}

TEST_CASE("open__unknown_tlv__an_optional_one_is_skipped_a_mandatory_one_told") {
  const auto optional = joined("\1\0\0\0\1\x80\1\0\0\0p\7\0\2\0\0\0xy"sv);
  REQUIRE(optional);
  CHECK(optional->path == "p");
  CHECK(optional->unknown_mandatory == 0);
  const auto mandatory = joined("\1\0\0\0\1\x80\1\0\0\0p\7\x80\2\0\0\0xy"sv);
  REQUIRE(mandatory);
  CHECK(mandatory->path == "p");
  CHECK(mandatory->unknown_mandatory == 0x8007);
}

TEST_CASE("open__first_entries__come_back_and_as_many_as_there_is_room_for_travel_with_the_hello") {
  Open open{option_recursive, "where/it/goes"};
  open.deletes = 7;
  const size_t room = room_for_first_entries(open);
  REQUIRE(room > 0);
  open.first = {3, std::vector<std::byte>(room, std::byte{5})};
  const auto in_hello = [&open] {
    ControlSender sender;
    const std::vector<Message> parts = cut(open);
    for (const Message& part : parts) CHECK(sender.post(part));
    return sender.early(hello_early_bytes_max).size() == parts.size();
  };
  CHECK(in_hello());
  const std::optional<Open> same = OpenJoiner().add(std::get<OpenPart>(cut(open).front()));
  REQUIRE(same);
  CHECK(same->first.count == 3);
  CHECK(same->first.bytes == open.first.bytes);
  CHECK(same->deletes == 7);
  open.first.bytes.emplace_back();
  CHECK_FALSE(in_hello());
  open.path.assign(path_bytes_max, 'p');
  CHECK(room_for_first_entries(open) == 0);
}

TEST_CASE("open__first_entries_that_are_none_or_too_many__fail") {
  CHECK(joined("\1\0\0\0\x2b\0\5\0\0\0\1\0\0\0e"sv));
  CHECK_FALSE(joined("\1\0\0\0\x2b\0\4\0\0\0\1\0\0\0"sv));   // no bytes
  CHECK_FALSE(joined("\1\0\0\0\x2b\0\3\0\0\0\1\0\0"sv));     // no count
  CHECK_FALSE(joined("\1\0\0\0\x2b\0\5\0\0\0\0\0\0\0e"sv));  // no entry
  CHECK(joined("\1\0\0\0\x2b\0\5\0\0\0\0\4\0\0e"sv));        // as many as a segment may have
  CHECK_FALSE(joined("\1\0\0\0\x2b\0\5\0\0\0\1\4\0\0e"sv));  // one more
}

TEST_CASE("open__malformed__fails") {
  CHECK(joined("\1\0\0\0"sv));
  CHECK_FALSE(joined("\1\0\0"sv));                   // options cut short
  CHECK_FALSE(joined("\1\0\0\0\1"sv));               // a TLV cut short
  CHECK_FALSE(joined("\1\0\0\0\1\x80\2\0\0\0p"sv));  // longer than the whole
  CHECK_FALSE(joined("\1\0\0\0\0\x80\1\0\0\0p"sv));  // number 0
  const auto with_path_of = [](size_t bytes) {
    std::string open("\1\0\0\0\1\x80", 6);
    open += static_cast<char>(bytes & 0xff);
    open += static_cast<char>(bytes >> 8);
    open.append(2, '\0').append(bytes, 'p');
    OpenJoiner joiner;
    std::optional<Open> whole;
    for (size_t at = 0; at < open.size(); at += open_part_bytes_max) {
      whole = joiner.add({static_cast<uint32_t>(open.size()), static_cast<uint32_t>(at), open.substr(at, open_part_bytes_max)});
    }
    return whole.has_value();
  };
  CHECK(with_path_of(path_bytes_max));
  CHECK_FALSE(with_path_of(path_bytes_max + 1));
}

TEST_CASE("open_joiner__parts_of_a_long_path__make_it_whole") {
  const size_t beside_path = 10;
  for (const size_t length :
       {size_t{0}, size_t{1}, open_part_bytes_max - beside_path, open_part_bytes_max - beside_path + 1, size_t{path_bytes_max}}) {
    OpenJoiner joiner;
    std::optional<Open> whole;
    const Open open{option_times, std::string(length, 'p')};
    for (const Message& part : cut(open)) {
      REQUIRE(!whole);
      const Result<Decoded> decoded = decode(encode(part, 1));
      REQUIRE(decoded);
      whole = joiner.add(std::get<OpenPart>(decoded->message));
      REQUIRE(!joiner.failed());
    }
    REQUIRE(whole);
    CHECK(whole->path == open.path);
    CHECK(whole->options == option_times);
    CHECK(!joiner.add(whole_part("\1\0\0\0"sv)));  // once only
    CHECK(joiner.failed());
  }
}

TEST_CASE("open_joiner__failed_or_complete__takes_no_other_part") {
  OpenJoiner failed;
  CHECK_FALSE(failed.add({4, 1, "b"}));
  CHECK(failed.failed());
  CHECK_FALSE(failed.add(whole_part("\1\0\0\0"sv)));
  CHECK(failed.failed());
  OpenJoiner complete;
  REQUIRE(complete.add(whole_part("\1\0\0\0"sv)));
  CHECK_FALSE(complete.failed());
  CHECK_FALSE(complete.add({4, 4, ""}));
  CHECK(complete.failed());
}

TEST_CASE("open_joiner__parts_that_contradict__fail") {
  const auto fails = [](const std::vector<OpenPart>& parts) {
    OpenJoiner joiner;
    for (const OpenPart& part : parts) {
      if (joiner.add(part)) return false;
    }
    return joiner.failed();
  };
  const std::string two("\1\0", 2);
  CHECK_FALSE(fails({{4, 0, two}, {4, 2, two}}));
  CHECK(fails({{4, 1, "\1"}}));              // a gap
  CHECK(fails({{4, 0, two}, {4, 1, two}}));  // an overlap
  CHECK(fails({{4, 0, two}, {5, 2, two}}));  // another length
  CHECK(fails({{4, 0, two}, {4, 2, ""}}));   // nothing, for ever
  CHECK(fails({{0, 0, ""}}));
  CHECK(fails({{open_bytes_max + 1, 0, two}}));
  CHECK(fails({{4, 0, std::string(5, '\0')}}));
}
