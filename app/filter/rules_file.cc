#include "app/filter/rules_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <span>
#include <system_error>

#include "core/base/units.h"

namespace ccixfer::filter {

Result<std::optional<std::string>> read_rules(ports::FileSystem& files, int fd, const std::string& name, bool follow) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorKind::file_io, fmt::format("cannot read the filter file: {}: {}", printable(name), why));
  };
  const auto words = [](int64_t error) { return std::generic_category().message(static_cast<int>(-error)); };
  ports::OpenFlags flags;
  flags.follow = follow;
  const int file = files.open(fd, name, flags, 0);
  if (file == -ENOENT || file == -ENOTDIR || file == -ELOOP || file == -ENXIO) return std::nullopt;
  if (file < 0) return wrong(words(file));
  ports::FileStat stat;
  const int looked = files.fstat(file, stat);
  if (looked >= 0 && stat.type != ports::FileType::regular) {
    files.close(file);
    return std::nullopt;
  }
  std::string text;
  int64_t got = looked;
  if (looked >= 0 && stat.size_bytes <= rules_file_bytes_max) {
    text.resize(rules_file_bytes_max + 1);
    size_t at = 0;
    do {
      got = files.pread(file, std::as_writable_bytes(std::span(text.data() + at, text.size() - at)), at);
      if (got > 0) at += static_cast<size_t>(got);
    } while (got > 0 && at < text.size());
    text.resize(at);
  }
  files.close(file);
  if (got < 0) return wrong(words(got));
  if (stat.size_bytes > rules_file_bytes_max || text.size() > rules_file_bytes_max) return wrong("it has more than 1 MiB");
  return std::optional<std::string>(std::move(text));
}

}  // namespace ccixfer::filter
