// What a pull asked for, and therefore what its peer may send. The peer chooses the names of the
// entries and may be anybody, so it must not choose what is made here (CVE-2019-6111). An entry that
// was not asked for ends the transfer before anything of its segment is done. Such an entry has
// another name than the one that was asked for, or a reserved name; it is a symbolic link without
// option_links, or a directory without option_recursive; it is in no directory that the peer has begun
// and not ended, so that nothing is ever below a link; or its name comes twice or out of the order of
// a walk. Memory: two strings for each level.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/filter/path_list.h"
#include "app/recv/earlier_sources.h"
#include "app/session/entry.h"
#include "core/base/result.h"

namespace ccixfer::recv {

struct Asked {
  std::string name;      // the one name that may come, with what is below it; "": none
  bool content = false;  // of a directory, whatever the names: `dir/`, or all that is served. A file that was called so has `name`
  std::optional<filter::PathList> list = {};  // that was asked for: then name and content say nothing
  bool specials = false;                      // devices, FIFOs and sockets
  bool hard_links = false;
  bool links = false;
  bool recursive = false;
  bool one_file = false;                         // nothing else is of use: source_selection, before anything is made
  std::shared_ptr<EarlierSources> earlier = {};  // of several sources; none: there is one
};
// `path` as in Open, below what the peer serves, and session::Option bits.
[[nodiscard]] Asked asked_for(std::string_view path, uint32_t options);

class AskedEntries {
 public:
  explicit AskedEntries(Asked asked) : asked_(std::move(asked)) {}
  // Takes all entries of a segment, in the order of the segments. protocol: what is wrong with the
  // first entry that was not asked for; source_selection: it is no file, where only one is of use.
  [[nodiscard]] Result<void> judge(const std::vector<session::Entry>& entries);

 private:
  struct Begun {
    std::string path;
    std::string last;  // name in it
  };
  [[nodiscard]] const char* fault(const session::Entry& entry);
  [[nodiscard]] const char* fault_at_top(const session::Entry& entry) const;
  [[nodiscard]] const char* fault_of_link(const session::Entry& entry) const;

  const Asked asked_;
  bool begun_ = false;        // the first entry came
  std::string last_at_top_;   // of a list
  std::vector<Begun> chain_;  // directories begun and not ended, the innermost last
};

}  // namespace ccixfer::recv
