// The text of a receipt: JSON, one object a line. README.md has the format.
//
//   header, entries in the order of comes_before, end, signature
//
// The signature is over the SHA-256 of all lines before it, each with its line feed. Encoding and parsing are inverse: a line that
// was parsed and encoded again has the same meaning. A receipt comes from anybody: what is not of this format is refused, with
// words that have nothing of it in them. Bounds: line_bytes_max.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "app/receipt/entry.h"
#include "core/base/result.h"
#include "core/trust/signature.h"

namespace ccixfer::receipt {

inline constexpr size_t line_bytes_max = 64u << 10;
inline constexpr uint64_t format_version = 1;
inline constexpr std::string_view signature_purpose = "ccixfer receipt 1";

enum class Side : uint8_t { source, destination };

struct Header {
  Side side = Side::source;  // who wrote it
  std::string transfer{};    // ids of the transfers, with spaces between them
  std::string peer{};        // who the other one is: an id, or a URI
  std::string path{};        // of the session, at the peer that was dialled
  std::string directory{};   // that the paths are below, on the host that wrote it; "": there is no one such
  bool archive = false;      // modes and times were kept: they may be compared
  int64_t time_s = 0;        // since 1970, when it was written
  std::string status{};      // of the transfer: error_row's name
  friend bool operator==(const Header&, const Header&) = default;
};

struct End {
  uint64_t files = 0, directories = 0, links = 0;
  uint64_t bytes = 0;
  friend bool operator==(const End&, const End&) = default;
};

struct Signed {
  std::string id{};  // of the signer, as he says; "": nobody signed it
  trust::Signature signature{};
};

using Line = std::variant<Header, Entry, End, Signed>;

// One line each, with its line feed.
[[nodiscard]] std::string encode(const Header& header);
[[nodiscard]] std::string encode(const Entry& entry);
[[nodiscard]] std::string encode(const End& end);
[[nodiscard]] std::string encode(const Signed& last);

// Without the line feed. usage: no line of a receipt. protocol: a receipt of a later version.
[[nodiscard]] Result<Line> parse(std::string_view line);

// What sha256sum -c reads: names with a backslash, a line feed or a carriage return are escaped as sha256sum does it.
[[nodiscard]] std::string sha256sum_line(const trust::Sha256Digest& digest, std::string_view path);

}  // namespace ccixfer::receipt
