// A pattern as rsync's rules have it, ready to be compared: `*` and `?` match no slash, `**` (and more
// stars) matches all, `[...]` is a set of bytes as of fnmatch(3) that has no slash in it, and a
// backslash takes away the meaning of the next byte. A pattern without `*`, `?` and `[` is a plain text,
// in which a backslash stands for itself.
// In: bytes of any encoding. A pattern that is malformed (a `[` without its `]`) matches nothing.
// Cost: the product of both lengths at most, whatever the pattern, which may be a peer's.
#pragma once
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ccixfer::filter {

class Wild {
 public:
  Wild() = default;
  explicit Wild(std::string_view pattern);
  [[nodiscard]] bool matches(std::string_view text) const;  // all of it
  // All of it, or all behind one of its slashes.
  [[nodiscard]] bool matches_an_end(std::string_view text) const;

 private:
  enum class Kind : uint8_t { byte, any, set, star, stars, nothing };
  struct Token {
    Kind kind = Kind::byte;
    uint8_t byte = 0;
    uint32_t set = 0;  // in sets_
  };
  using Set = std::bitset<256>;
  [[nodiscard]] bool run(std::string_view text, bool begins_anywhere) const;
  [[nodiscard]] size_t add_set(std::string_view pattern, size_t at);  // behind the `[`; where it goes on
  [[nodiscard]] bool takes(const Token& token, uint8_t byte) const;

  bool is_plain_ = true;
  std::string plain_;
  std::vector<Token> tokens_;
  std::vector<Set> sets_;
};

[[nodiscard]] bool is_wild(std::string_view pattern);

}  // namespace ccixfer::filter
