#include "app/trust/ticket_rows.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "core/base/units.h"

namespace ccixfer::policy {
namespace {

constexpr std::string_view headline = "ccixfer tickets 1";
constexpr std::string_view digits = "0123456789abcdef";

void put_hex(std::string& text, std::span<const uint8_t> bytes) {
  for (const uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
}

bool take_hex(std::string_view text, std::span<uint8_t> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = digits.find(text[i]);
    if (digit == std::string_view::npos) return false;
    bytes[i / 2] = static_cast<uint8_t>(i % 2 == 0 ? digit << 4 : bytes[i / 2] | digit);
  }
  return true;
}

template <typename Number>
bool take_number(std::string_view text, Number low, Number high, Number& out) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc() && end == text.data() + text.size() && out >= low && out <= high;
}

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '.' || c == '_' || c == '-';
}

void put_path(std::string& text, std::string_view path) {
  for (const char c : path) {
    if (plain(c)) {
      text += c;
    } else {
      text += '%';
      put_hex(text, std::array{static_cast<uint8_t>(c)});
    }
  }
}

bool take_path(std::string_view text, std::string& path) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!plain(text[i])) return false;
      path += text[i];
      continue;
    }
    std::array<uint8_t, 1> byte{};
    if (text.size() - i < 3 || !take_hex(text.substr(i + 1, 2), byte) || byte[0] == 0) return false;
    path += static_cast<char>(byte[0]);
    i += 2;
  }
  return path.starts_with('/');
}

bool take_direction(std::string_view text, Direction& direction) {
  direction = text == name_of(Direction::read) ? Direction::read : Direction::write;
  return text == name_of(direction);
}

bool take_delivery(std::string_view text, TicketDelivery& delivery) {
  const size_t at = text.find('@');
  return at != std::string_view::npos && take_hex(text.substr(0, at), delivery.transfer) &&
         take_number<int64_t>(text.substr(at + 1), 0, INT64_MAX, delivery.at_s);
}

std::vector<std::string_view> split(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find(between);
    parts.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return parts;
}

std::optional<TicketRow> take_row(std::string_view line) {
  const auto parts = split(line, ' ');
  if (parts.size() < 6 || parts.size() > 6 + ticket_uses_max) return std::nullopt;
  TicketRow row;
  const bool good = take_hex(parts[0], row.number) && take_hex(parts[1], row.secret) &&
                    take_number<int64_t>(parts[2], 0, INT64_MAX, row.expires_s) &&
                    take_number<uint32_t>(parts[3], 0, ticket_uses_max, row.uses_left) && take_direction(parts[4], row.direction) &&
                    take_path(parts[5], row.root);
  if (!good) return std::nullopt;
  for (size_t i = 6; i < parts.size(); ++i) {
    if (!take_delivery(parts[i], row.delivered.emplace_back())) return std::nullopt;
  }
  return row;
}

}  // namespace

Result<std::vector<TicketRow>> parse_ticket_rows(std::string_view text, std::string_view what) {
  std::vector<TicketRow> rows;
  if (text.empty()) return rows;
  const auto wrong = [&](size_t number, std::string_view problem, std::string_view what_to_do) {
    return fail(ErrorKind::usage, fmt::format("{}:{}: {}: {}", printable(what), number, problem, what_to_do));
  };
  if (text.size() > ticket_file_bytes_max)
    return wrong(1, "the file is too long", fmt::format("at most {} bytes", ticket_file_bytes_max));
  size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (++number == 1) {
      if (line != headline) return wrong(number, "no file of tickets, or of a later version", "move it away and issue new tickets");
      continue;
    }
    if (line.empty()) continue;
    auto row = take_row(line);
    if (!row) return wrong(number, "a damaged ticket", "remove the line");
    if (rows.size() == ticket_rows_max) return wrong(number, "one ticket too many", fmt::format("at most {}", ticket_rows_max));
    rows.push_back(std::move(*row));
  }
  return rows;
}

std::string format_ticket_rows(const std::vector<TicketRow>& rows) {
  std::string text = fmt::format("{}\n", headline);
  for (const TicketRow& row : rows) {
    put_hex(text, row.number);
    text += ' ';
    put_hex(text, row.secret);
    text += fmt::format(" {} {} {} ", row.expires_s, row.uses_left, name_of(row.direction));
    put_path(text, row.root);
    for (const TicketDelivery& delivery : row.delivered) {
      text += ' ';
      put_hex(text, delivery.transfer);
      text += fmt::format("@{}", delivery.at_s);
    }
    text += '\n';
  }
  return text;
}

std::string to_text(const trust::TicketNumber& number) {
  std::string text;
  put_hex(text, number);
  return text;
}

}  // namespace ccixfer::policy
