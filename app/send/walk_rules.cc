#include "app/send/walk_rules.h"

#include <fmt/format.h>

#include <utility>

#include "app/filter/rules_file.h"
#include "app/send/walk_parts.h"
#include "core/base/units.h"

namespace ccixfer::send {

std::string absolute_place(std::string_view base, std::string_view given) {
  std::string place;
  const auto add = [&place](std::string_view path) {
    while (!path.empty()) {
      const size_t slash = path.find('/');
      const std::string_view part = path.substr(0, slash);
      path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        const size_t last = place.rfind('/');
        place.resize(last == std::string::npos ? 0 : last);
        continue;
      }
      if (!place.empty()) place += '/';
      place += part;
    }
  };
  if (!given.starts_with('/')) add(base);
  add(given);
  return place;
}

Result<std::vector<filter::Rules::Above>> rules_above(ports::FileSystem& files, int root, const filter::Rules& rules,
                                                      std::string_view place) {
  std::vector<filter::Rules::Above> above;
  if (!rules.asks_for_parents()) return above;
  const bool follow = root < 0;
  for (size_t at = 0; !place.empty() && at != std::string_view::npos; at = place.find('/', at + 1)) {
    const std::string directory(place.substr(0, at));
    ports::OpenFlags flags;
    flags.directory = flags.anchor = true;
    const std::string name = follow ? "/" + directory : directory.empty() ? "." : directory;
    const int fd = files.open(root, name, flags, 0);
    if (is_absent(fd)) break;
    if (fd < 0)
      return fail(ErrorKind::file_io, fmt::format("cannot look for filter files in /{}: {}", printable(directory), words(fd)));
    for (const filter::Rule& rule : rules.list) {
      if (!rule.is(filter::rule_parents)) continue;
      auto text = filter::read_rules(files, fd, rule.pattern(), follow);
      if (!text) {
        files.close(fd);
        return fail(text.error().kind, fmt::format("in /{}: {}", printable(directory), text.error().message));
      }
      if (*text) above.push_back({rule.pattern(), directory, std::move(**text)});
    }
    files.close(fd);
  }
  return above;
}

}  // namespace ccixfer::send
