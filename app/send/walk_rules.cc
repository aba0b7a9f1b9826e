#include "app/send/walk_rules.h"

#include "app/filter/rules_file.h"

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

std::vector<filter::Rules::Above> rules_above(ports::FileSystem& files, int root, const filter::Rules& rules,
                                              std::string_view place) {
  std::vector<filter::Rules::Above> above;
  if (!rules.asks_for_parents()) return above;
  for (size_t at = 0; !place.empty() && at != std::string_view::npos; at = place.find('/', at + 1)) {
    const std::string directory(place.substr(0, at));
    ports::OpenFlags flags;
    flags.directory = true;
    const int fd = files.open(root, directory.empty() ? "." : directory, flags, 0);
    if (fd < 0) break;
    for (const filter::Rule& rule : rules.list) {
      if (!rule.is(filter::rule_parents)) continue;
      auto text = filter::read_rules(files, fd, rule.pattern(), false);
      if (text && *text) above.push_back({rule.pattern(), directory, std::move(**text)});
    }
    files.close(fd);
  }
  return above;
}

}  // namespace ccixfer::send
