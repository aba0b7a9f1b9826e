// Rules: what they leave out, as rsync does, how they are written, and how they travel.
#include <array>
#include <catch2/catch.hpp>
#include <map>

#include "app/filter/scope.h"
#include "tests/unit/filter/rsync_rows.h"

using namespace ccixfer;
using namespace ccixfer::filter;

namespace {

using Files = std::map<std::string, std::string>;

Result<std::string> read_from(const Files& files, const std::string& name) {
  const auto found = files.find(name);
  if (found == files.end()) return fail(ErrorKind::usage, name + ": No such file or directory");
  return found->second;
}

Rules rules_of(const std::vector<std::string>& texts, const Files& files = {}, bool delete_excluded = false) {
  RulesBuilder builder([&files](const std::string& name) { return read_from(files, name); }, false, delete_excluded);
  for (const std::string& text : texts) {
    const auto added = builder.add_filter(text);
    INFO(text);
    REQUIRE(added.has_value());
  }
  return builder.take();
}

std::string problem_of(const std::string& text, const Files& files = {}) {
  RulesBuilder builder([&files](const std::string& name) { return read_from(files, name); }, false, false);
  const auto added = builder.add_filter(text);
  if (added) return "";
  CHECK(added.error().kind == ErrorKind::usage);
  return added.error().message;
}

// Walks a tree as a sender does; `files` are those of rules, by path.
class Walked {
 public:
  Walked(Rules rules, std::vector<std::string> paths, Files files = {}, Side side = Side::sender)
      : scope_(std::move(rules), side), paths_(std::move(paths)), files_(std::move(files)) {
    REQUIRE(scope_.begin("top/t").has_value());
    list("");
  }
  std::vector<std::string> left_out;

 private:
  void list(const std::string& directory) {
    const auto read = [&](const std::string& name) -> Result<std::optional<std::string>> {
      const auto found = files_.find(directory + name);
      if (found == files_.end()) return std::nullopt;
      return std::optional<std::string>(found->second);
    };
    REQUIRE(scope_.enter(directory.substr(0, directory.empty() ? 0 : directory.size() - 1), read).has_value());
    for (const std::string& path : paths_) {
      const bool is_directory = path.back() == '/';
      const std::string name = is_directory ? path.substr(0, path.size() - 1) : path;
      if (name.size() <= directory.size() || !name.starts_with(directory) || name.find('/', directory.size()) != std::string::npos)
        continue;
      if (scope_.excludes(name, is_directory)) {
        left_out.push_back(path);
      } else if (is_directory) {
        list(path);
      }
    }
    scope_.leave();
  }
  Scope scope_;
  const std::vector<std::string> paths_;
  const Files files_;
};

std::vector<std::string> sorted(std::vector<std::string> list) {
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

TEST_CASE("rules__one_tree__leave_out_what_rsync_leaves_out") {
  for (const RsyncRow& row : rsync_rows) {
    INFO(row.rules.front());
    CHECK(sorted(Walked(rules_of(row.rules), rsync_tree).left_out) == sorted(row.left_out));
  }
}

TEST_CASE("rules__encoded_and_decoded__are_the_same") {
  for (const RsyncRow& row : rsync_rows) {
    const auto there = decode_rules(encode(rules_of(row.rules)));
    REQUIRE(there.has_value());
    CHECK(sorted(Walked(*there, rsync_tree).left_out) == sorted(row.left_out));
  }
}

TEST_CASE("rules__bytes_of_a_peer__malformed_ones_are_refused") {
  using namespace std::string_view_literals;
  const auto is_fine = [](std::string_view bytes) { return decode_rules(as_bytes(bytes)).has_value(); };
  CHECK(is_fine("\0"sv));
  CHECK(is_fine("\1\0\0\1\0a"sv));
  CHECK_FALSE(is_fine(""sv));
  CHECK_FALSE(is_fine("\4"sv));               // a bit that nobody knows
  CHECK_FALSE(is_fine("\0\0\x10\1\0a"sv));    // a flag that nobody knows
  CHECK_FALSE(is_fine("\0\0\0\0\0"sv));       // no pattern
  CHECK_FALSE(is_fine("\0\0\0\2\0a"sv));      // cut short
  CHECK_FALSE(is_fine("\0\0\0\1\0\0"sv));     // a zero byte
  CHECK_FALSE(is_fine("\0\x80\0\3\0a/b"sv));  // a merge of a file elsewhere
  CHECK_FALSE(is_fine("\0\x80\0\2\0.."sv));
  std::string many(1, '\0');
  while (many.size() <= rules_bytes_max) many += "\0\0\1\0a"sv;
  CHECK_FALSE(is_fine(many));
}

TEST_CASE("rules__a_file_in_each_directory__holds_there_and_below") {
  const std::vector<std::string> tree = {".f", "a", "b", "d/", "d/.f", "d/a", "d/b", "d/e/", "d/e/a", "d/e/b", "x/", "x/a", "x/b"};
  const Files files = {{".f", "# none of these\n- /b\n"}, {"d/.f", "- a\n\n- /e/b\n"}};
  CHECK(Walked(rules_of({": .f"}), tree, files).left_out == std::vector<std::string>{"b", "d/a", "d/e/a", "d/e/b"});
  CHECK(Walked(rules_of({":n .f"}), tree, files).left_out == std::vector<std::string>{"b", "d/a"});
  CHECK(Walked(rules_of({":e .f"}), tree, files).left_out == std::vector<std::string>{".f", "b", "d/.f", "d/a", "d/e/a", "d/e/b"});
  CHECK(Walked(rules_of({"+ a", ": .f"}), tree, files).left_out == std::vector<std::string>{"b", "d/e/b"});
  CHECK(Walked(rules_of({": .f", "- x"}), tree, {{"d/.f", "!\n"}}).left_out == std::vector<std::string>{"x/"});
  CHECK(Walked(rules_of({": .f"}), tree, {{".f", "- a"}, {"d/.f", "!\n- b\r+ a"}}).left_out ==
        std::vector<std::string>{"a", "d/b", "d/e/b", "x/a"});
  CHECK(Walked(rules_of({":- .f"}), tree, {{".f", "a\n+ b\n"}}).left_out == std::vector<std::string>{"a", "d/a", "d/e/a", "x/a"});
  CHECK(Walked(rules_of({":w- .f"}), tree, {{"d/.f", "a  b"}}).left_out ==
        std::vector<std::string>{"d/a", "d/b", "d/e/a", "d/e/b"});
  CHECK(Walked(rules_of({":s .f"}), tree, {{"x/.f", "- a"}}, Side::receiver).left_out.empty());
}

TEST_CASE("rules__a_file_that_names_another__takes_its_rules_in") {
  const std::vector<std::string> tree = {"a", "d/", "d/a", "d/b", "d/e/", "d/e/b", "x/", "x/b"};
  CHECK(Walked(rules_of({": .f"}), tree, {{"d/.f", ": .g"}, {"d/.g", "- a"}, {"d/e/.g", "- b"}, {"x/.g", "- b"}}).left_out ==
        std::vector<std::string>{"d/a", "d/e/b"});
  CHECK(Walked(rules_of({": .f"}), tree, {{"d/.f", ". .g\n"}, {"d/.g", "- b"}}).left_out ==
        std::vector<std::string>{"d/b", "d/e/b"});
  CHECK(Walked(rules_of({". r"}, {{"r", "- a\n. s\n"}, {"s", "- x/\n"}}), tree).left_out ==
        std::vector<std::string>{"a", "d/a", "x/"});
  Scope scope(rules_of({": .f"}), Side::sender);
  REQUIRE(scope.begin(""));
  const auto itself = [](const std::string&) -> Result<std::optional<std::string>> { return std::optional<std::string>(". .f"); };
  CHECK_FALSE(scope.enter("", itself));
}

TEST_CASE("rules__of_the_directories_above__hold_where_they_are_asked_for") {
  Rules rules = rules_of({": /.f"});
  rules.above = {{".f", "", "- /top/t/a\n- x"}, {".f", "top", "- /t/b"}};
  CHECK(Walked(rules, {"a", "b", "c", "d/", "d/a", "d/x"}).left_out == std::vector<std::string>{"a", "b", "d/x"});
}

TEST_CASE("rules__sides__what_is_deleted_has_rules_of_its_own") {
  const std::vector<std::string> tree = {"a", "b", "c", "d"};
  const std::vector<std::string> texts = {"H a", "P b", "- c"};
  CHECK(Walked(rules_of(texts), tree).left_out == std::vector<std::string>{"a", "c"});
  CHECK(Walked(rules_of(texts), tree, {}, Side::receiver).left_out == std::vector<std::string>{"b", "c"});
  CHECK(Walked(rules_of(texts, {}, true), tree, {}, Side::receiver).left_out == std::vector<std::string>{"b"});
  Scope scope(rules_of({"-p a", "- b"}), Side::receiver);
  REQUIRE(scope.begin(""));
  CHECK(scope.excludes("a", false));
  CHECK_FALSE(scope.excludes("a", false, true));
  CHECK(scope.excludes("b", false, true));
}

// As rsync 3.5 does, where the files of rules in the tree name no side.
TEST_CASE("rules__a_file_that_excludes_itself__may_be_deleted_as_what_else_is_excluded") {
  for (const std::string rule : {":e .f", ":es .f", ":er .f"}) {
    INFO(rule);
    const auto left_out = [&](bool delete_excluded, Side side) {
      return Walked(rules_of({rule}, {}, delete_excluded), {".f", "z"}, {}, side).left_out;
    };
    const std::vector<std::string> itself{".f"};
    CHECK(left_out(false, Side::sender) == itself);
    CHECK(left_out(false, Side::receiver) == itself);
    CHECK(left_out(true, Side::sender) == itself);
    CHECK(left_out(true, Side::receiver).empty());
  }
  const Files nested{{".f", ":e .g\n"}};
  CHECK(Walked(rules_of({": .f"}, {}, true), {".f", ".g"}, nested, Side::receiver).left_out == std::vector<std::string>{".g"});
}

TEST_CASE("rules__that_are_wrong__name_file_and_line") {
  CHECK(problem_of("x y").find("--filter: x y: no such rule") != std::string::npos);
  CHECK(problem_of("-") != "");
  CHECK(problem_of("- ") != "");
  CHECK(problem_of("! a") != "");
  CHECK(problem_of("-e a") != "");
  CHECK(problem_of(":-+ a") != "");
  CHECK(problem_of(":! a") != "");
  CHECK(problem_of("Hs a") != "");
  CHECK(problem_of(":C") != "");
  CHECK(problem_of("excluded a") != "");
  CHECK(problem_of(": a/b") != "");
  CHECK(problem_of(". absent").find("absent") != std::string::npos);
  CHECK(problem_of(". r", {{"r", "- a\n\n# c\nq\n"}}).find("r line 4: q: no such rule") != std::string::npos);
  CHECK(problem_of(".s r", {{"r", "H a\n"}}).find("r line 1") != std::string::npos);
  CHECK(problem_of(". r", {{"r", ". r\n"}}).find("too deeply") != std::string::npos);
  CHECK(problem_of("- " + std::string(pattern_bytes_max + 1, 'a')) != "");
}

TEST_CASE("rules__patterns__of_exclude_and_include_know_old_prefixes_only") {
  const Files files = {{"list", "a\n+ b\n; c\n\n- c\nH d\n"}};
  RulesBuilder builder([&files](const std::string& name) { return read_from(files, name); }, false, false);
  REQUIRE(builder.add_pattern("+ a.keep", false));
  REQUIRE(builder.add_patterns_of("list", false));
  REQUIRE(builder.add_pattern("*", true));
  const Rules rules = builder.take();
  const std::vector<std::string> tree = {"+ b", "H d", "a", "a.keep", "b", "c", "d", "e"};
  CHECK(Walked(rules, tree).left_out == std::vector<std::string>{"H d", "a", "c"});
}

TEST_CASE("rules__of_files_that_only_the_receiver_may_read__are_not_shown") {
  Scope scope(rules_of({": .f"}), Side::receiver);
  REQUIRE(scope.begin(""));
  for (const char* const text : {"a secret", ". another secret"}) {
    const auto read = [&](const std::string& name) -> Result<std::optional<std::string>> {
      return name == ".f" ? std::optional<std::string>(text) : std::nullopt;
    };
    const auto entered = scope.enter("", read);
    REQUIRE_FALSE(entered);
    CHECK(entered.error().message.find("/.f line 1") != std::string::npos);
    CHECK(entered.error().message.find("secret") == std::string::npos);
    scope.leave();
  }
}

TEST_CASE("rules__more_than_a_file_may_bring__are_an_error_and_come_back_with_the_next_directory") {
  Scope scope(rules_of({": .f"}), Side::receiver);
  REQUIRE(scope.begin(""));
  std::string many, few;
  for (int i = 0; i < 1000; ++i) many += ". g\n";
  for (int i = 0; i < 1000; ++i) few += "- x\n";
  const auto read = [&](const std::string& name) -> Result<std::optional<std::string>> {
    return std::optional<std::string>(name == ".f" ? many : few);
  };
  CHECK_FALSE(scope.enter("", read));
  scope.leave();
  const auto modest = [&](const std::string&) -> Result<std::optional<std::string>> { return std::optional<std::string>(few); };
  CHECK(scope.enter("", modest));
}

TEST_CASE("wild__an_end_behind_a_slash__is_what_the_pattern_is_compared_with_one_by_one") {
  const auto by_one = [](const Wild& wild, std::string_view text) {
    if (wild.matches(text)) return true;
    for (size_t slash = text.find('/'); slash != std::string_view::npos; slash = text.find('/', slash + 1)) {
      if (wild.matches(text.substr(slash + 1))) return true;
    }
    return false;
  };
  uint32_t seed = 1, found = 0;
  const auto next = [&seed](uint32_t below) { return (seed = seed * 1664525u + 1013904223u) / 65536u % below; };
  for (int round = 0; round < 20'000; ++round) {
    std::string pattern, text;
    for (uint32_t i = next(7) + 1; i > 0; --i) pattern += std::array{"a", "b", "/", "?", "*", "**", "[ab]"}[next(7)];
    for (uint32_t i = next(9); i > 0; --i) text += std::array{'a', 'b', '/'}[next(3)];
    CAPTURE(pattern, text);
    const Wild wild(pattern);
    REQUIRE(wild.matches_an_end(text) == by_one(wild, text));
    found += wild.matches_an_end(text) ? 1u : 0u;
  }
  CHECK(found > 1000);
}

TEST_CASE("wild__a_pattern_made_to_be_slow__is_answered_soon") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK_FALSE(Wild(pattern + "b").matches(std::string(4000, 'a')));
  CHECK(Wild(pattern).matches(std::string(4000, 'a')));
}
