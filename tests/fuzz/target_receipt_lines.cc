// A line of a receipt: refused, or the same after it was written and read again. A path never leaves the tree.
#include "app/receipt/format.h"
#include "app/session/entry.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto line = receipt::parse(as_text(fuzz::bytes_of(data, size)));
  if (!line) {
    fuzz::must(line.error().kind == ErrorKind::usage || line.error().kind == ErrorKind::protocol);
    for (const char c : line.error().message) fuzz::must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    return 0;
  }
  const std::string text = std::visit([](const auto& part) { return receipt::encode(part); }, *line);
  fuzz::must(text.ends_with('\n') && text.find('\n') == text.size() - 1);
  const auto again = receipt::parse(std::string_view(text).substr(0, text.size() - 1));
  if (text.size() > receipt::line_bytes_max) return 0;  // what another one wrote more tersely
  fuzz::must(again && again->index() == line->index());
  if (const auto* entry = std::get_if<receipt::Entry>(&*line)) {
    fuzz::must(*entry == std::get<receipt::Entry>(*again));
    fuzz::must(!entry->path.empty() && session::is_safe_relative_path(entry->path));
    const trust::Sha256Digest digest{};
    fuzz::must(receipt::sha256sum_line(digest, entry->path).find('\n') + 1 == receipt::sha256sum_line(digest, entry->path).size());
  }
  if (const auto* header = std::get_if<receipt::Header>(&*line)) fuzz::must(*header == std::get<receipt::Header>(*again));
  if (const auto* end = std::get_if<receipt::End>(&*line)) fuzz::must(*end == std::get<receipt::End>(*again));
  if (const auto* last = std::get_if<receipt::Signed>(&*line)) {
    const auto& same = std::get<receipt::Signed>(*again);
    fuzz::must(last->id == same.id && last->signature.value == same.signature.value);
  }
  return 0;
}
