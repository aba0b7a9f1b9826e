// Extended attributes and access control lists as they travel, and what no peer may say of them.
#include "app/session/extended.h"

#include <array>
#include <catch2/catch.hpp>

#include "app/session/messages.h"
#include "tests/unit/session/no_files.h"

namespace ccixfer::session {
namespace {

std::string acl(std::initializer_list<std::array<uint8_t, 2>> entries) {
  std::string text("\x02\0\0\0", 4);
  for (const auto& [tag, rights] : entries)
    text += std::string{static_cast<char>(tag), 0, static_cast<char>(rights), 0} + "\xff\xff\xff\xff";
  return text;
}

std::vector<std::byte> encoded(const std::vector<ExtendedAttribute>& list) { return encode_extended(list); }

}  // namespace

TEST_CASE("extended__a_list_of_all_tags__is_an_acl") {
  CHECK(is_acl(acl({{1, 6}, {4, 4}, {32, 0}})));
  CHECK(is_acl(acl({{1, 6}, {2, 7}, {2, 1}, {4, 4}, {8, 0}, {16, 7}, {32, 0}})));
  CHECK_FALSE(is_acl(acl({{1, 6}, {2, 7}, {4, 4}, {32, 0}})));             // a named user without a mask
  CHECK_FALSE(is_acl(acl({{1, 6}, {32, 0}})));                             // no owning group
  CHECK_FALSE(is_acl(acl({{4, 4}, {1, 6}, {32, 0}})));                     // out of order
  CHECK_FALSE(is_acl(acl({{1, 6}, {1, 6}, {4, 4}, {32, 0}})));             // twice
  CHECK_FALSE(is_acl(acl({{1, 8}, {4, 4}, {32, 0}})));                     // no such right
  CHECK_FALSE(is_acl(acl({{1, 6}, {4, 4}, {32, 0}}).substr(0, 27)));       // cut
  CHECK_FALSE(is_acl("\x03" + acl({{1, 6}, {4, 4}, {32, 0}}).substr(1)));  // another version
  CHECK_FALSE(is_acl(""));
}

TEST_CASE("extended__what_a_file_system_may_list_and_no_peer_takes__is_left_out") {
  class Odd final : public NoFiles {
   public:
    int list_attributes(int, std::vector<std::string>& names) override {
      names = {"user.b", "user.a", "user.b", "nodot", ".front", "user.", "user.gone"};
      return 0;
    }
    int get_attribute(int, std::string_view name, std::string& value) override {
      value = "of " + std::string(name);
      return name == "user.gone" ? -ENODATA : 0;
    }
  } files;
  std::vector<ExtendedAttribute> got, again;
  REQUIRE(read_extended(files, 0, option_xattrs, true, got) == 0);
  REQUIRE(got.size() == 2);
  CHECK(got[0].name == "user.a");
  CHECK(got[1].value == "of user.b");
  CHECK(decode_extended(encoded(got), again));
}

TEST_CASE("extended__names_out_of_order_or_malformed__are_refused") {
  std::vector<ExtendedAttribute> got;
  CHECK(decode_extended(encoded({{"user.a", "1"}, {"user.b", ""}}), got));
  CHECK(got.size() == 2);
  CHECK_FALSE(decode_extended(encoded({{"user.b", ""}, {"user.a", ""}}), got));
  CHECK_FALSE(decode_extended(encoded({{"user.a", ""}, {"user.a", ""}}), got));
  CHECK_FALSE(decode_extended(encoded({{"user.", ""}}), got));
  CHECK_FALSE(decode_extended(encoded({{".a", ""}}), got));
  CHECK_FALSE(decode_extended(encoded({{"nodot", ""}}), got));
  CHECK_FALSE(decode_extended(encoded({{std::string("user.\0", 6), ""}}), got));
  CHECK_FALSE(decode_extended(encoded({{"system.posix_acl_access", "nonsense"}}), got));
  CHECK_FALSE(decode_extended(encoded({{"user.long", std::string(extended_bytes_max, 'x')}}), got));
  auto cut = encoded({{"user.a", "value"}});
  cut.pop_back();
  CHECK_FALSE(decode_extended(cut, got));
}

TEST_CASE("extended__which_are_wanted__as_the_options_and_the_account_say") {
  CHECK(is_wanted_extended("user.a", option_xattrs, false));
  CHECK_FALSE(is_wanted_extended("security.a", option_xattrs, false));
  CHECK(is_wanted_extended("security.a", option_xattrs, true));
  CHECK_FALSE(is_wanted_extended("system.nfs4_acl", option_xattrs, true));
  CHECK_FALSE(is_wanted_extended(access_acl_name, option_xattrs, true));
  CHECK(is_wanted_extended(default_acl_name, option_acls, false));
  CHECK_FALSE(is_wanted_extended("user.a", option_acls, true));
}

}  // namespace ccixfer::session
