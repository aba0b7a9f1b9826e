#include "app/receipt/reader.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::receipt {

tl::unexpected<Error> Reader::wrong(ErrorKind kind, std::string_view what) const {
  return fail(kind, fmt::format("{}:{}: {}", printable(name_), number_, what));
}

// Nothing: the file ended.
Result<std::optional<Line>> Reader::read_line() {
  line_.clear();
  ++number_;
  if (stop_ && stop_()) return wrong(ErrorKind::interrupted, "interrupted: the rest of the receipt was not read");
  for (int c = std::getc(in_); c != EOF; c = std::getc(in_)) {
    line_ += static_cast<char>(c);
    if (c == '\n') break;
    if (line_.size() > line_bytes_max) return wrong(ErrorKind::usage, "it is no line of a receipt");
  }
  if (std::ferror(in_) != 0) return wrong(ErrorKind::file_io, "the receipt cannot be read");
  if (line_.empty()) return std::optional<Line>();
  if (line_.back() != '\n') return wrong(ErrorKind::integrity, "the receipt is torn: its last line is cut off");
  auto parsed = parse(std::string_view(line_).substr(0, line_.size() - 1));
  if (!parsed) return wrong(parsed.error().kind, parsed.error().message);
  return std::optional<Line>(std::move(*parsed));
}

// What begins otherwise is no receipt; what goes on otherwise is one that was damaged.
Result<std::optional<Line>> Reader::read_first() {
  std::rewind(in_);
  number_ = 0;
  auto first = read_line();
  if (!first && first.error().kind == ErrorKind::integrity) return wrong(ErrorKind::usage, "it is no receipt");
  if (!first) return first;
  if (!*first || !std::holds_alternative<Header>(**first)) return wrong(ErrorKind::usage, "it is no receipt");
  return first;
}

Result<Checked> Reader::check() {
  Checked checked;
  auto first = read_first();
  if (!first) return tl::unexpected(first.error());
  checked.header = std::get<Header>(**first);
  trust::Sha256 hash;
  hash.update(as_bytes(line_));
  End found;
  bool has_end = false;
  std::string before;
  while (true) {
    auto line = read_line();
    if (!line) {
      if (line.error().kind != ErrorKind::usage) return tl::unexpected(line.error());
      return wrong(ErrorKind::integrity, "the receipt is damaged");
    }
    if (!*line) return wrong(ErrorKind::integrity, "the receipt is torn: its end is missing");
    if (const auto* last = std::get_if<Signed>(&**line)) {
      if (!has_end) return wrong(ErrorKind::integrity, "the receipt is damaged: its end is missing");
      sum_ = hash.digest();
      if (std::getc(in_) != EOF) return wrong(ErrorKind::integrity, "the receipt is damaged: something follows its signature");
      if (last->id.empty()) return checked;
      const auto signer = trust::check_signature(last->signature, signature_purpose, std::as_bytes(std::span(*sum_)));
      if (!signer)
        return wrong(ErrorKind::authentication, fmt::format("the receipt was changed, or is forged: {}", signer.error().message));
      if (trust::to_string(*signer) != last->id)
        return wrong(ErrorKind::authentication, "the receipt is forged: it names another signer than the one of its key");
      checked.signer = *signer;
      return checked;
    }
    hash.update(as_bytes(line_));
    if (has_end) return wrong(ErrorKind::integrity, "the receipt is damaged: something follows its end");
    if (const auto* end = std::get_if<End>(&**line)) {
      if (*end != found) return wrong(ErrorKind::integrity, "the receipt is damaged: its counts are not those of its entries");
      checked.end = *end;
      has_end = true;
      continue;
    }
    const auto* entry = std::get_if<Entry>(&**line);
    if (entry == nullptr) return wrong(ErrorKind::integrity, "the receipt is damaged: it begins twice");
    if (!before.empty() && !comes_before(before, entry->path))
      return wrong(ErrorKind::integrity, "the receipt is damaged: its entries are not in order");
    before = entry->path;
    if (entry->type == EntryType::directory) ++found.directories;
    if (entry->type == EntryType::link) ++found.links;
    if (entry->type != EntryType::file) continue;
    ++found.files;
    found.bytes += entry->size_bytes;
  }
}

Result<std::optional<Entry>> Reader::next() {
  const auto changed = [this](const auto& line) {
    if (!line && line.error().kind == ErrorKind::interrupted) return tl::unexpected<Error>(line.error());
    return wrong(ErrorKind::integrity, "the receipt was changed while it was read");
  };
  if (!started_) {
    auto first = read_first();
    if (!first) return changed(first);
    again_.update(as_bytes(line_));
    started_ = true;
  }
  auto line = read_line();
  if (!line || !*line) return changed(line);
  if (const auto* entry = std::get_if<Entry>(&**line)) {
    again_.update(as_bytes(line_));
    return std::optional<Entry>(*entry);
  }
  if (!std::holds_alternative<End>(**line)) return changed(line);
  again_.update(as_bytes(line_));
  if (!sum_ || again_.digest() != *sum_) return changed(line);
  return std::optional<Entry>();
}

}  // namespace ccixfer::receipt
