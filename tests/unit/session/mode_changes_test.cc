// --chmod: rsync's syntax and its meaning.
#include "app/session/mode_changes.h"

#include <catch2/catch.hpp>

namespace ccixfer::session {
namespace {

uint32_t changed(std::string_view text, uint32_t mode, bool is_directory = false) {
  ModeChanges changes;
  REQUIRE(changes.add(text, 022));
  return changes.apply(mode, is_directory);
}

}  // namespace

TEST_CASE("mode_changes__each_form__as_rsync_has_it") {
  CHECK(changed("D755,F644", 0700) == 0644);
  CHECK(changed("D755,F644", 0700, true) == 0755);
  CHECK(changed("go-w", 0666) == 0644);
  CHECK(changed("+w", 0444) == 0644);  // without a class the umask counts
  CHECK(changed("a+w", 0444) == 0666);
  CHECK(changed("a+X", 0644) == 0644);
  CHECK(changed("a+X", 0744) == 0755);
  CHECK(changed("a+X", 0600, true) == 0711);
  CHECK(changed("Dg+s", 0755, true) == 02755);
  CHECK(changed("Dg+s", 0755) == 0755);
  CHECK(changed("ug+s", 0755) == 06755);
  CHECK(changed("+t", 0755) == 01755);
  CHECK(changed("o=", 0777) == 0770);
  CHECK(changed("g=u", 0704) == 0774);
  CHECK(changed("u=rwx,go=rx", 04600) == 04755);
  CHECK(changed("2775", 0600, true) == 02775);
}

TEST_CASE("mode_changes__what_is_none__is_refused") {
  for (const std::string_view text : {"", "u", "DF+x", "u+q", "u8", "9", "77777", "u+x,", "g=ur", "u644"}) {
    ModeChanges changes;
    INFO(text);
    CHECK_FALSE(changes.add(text, 022));
  }
}

}  // namespace ccixfer::session
