// Owners by name: an owner of the source becomes the one here that has the same name, as with rsync. The first entry of a session
// with an owner tells the name of it. One that has no name there, or whose name nobody has here, keeps its number; so does root.
// Of one session: the job that judges entries has it for itself. Bound: owner_names_max users and as many groups are kept; what has
// another one is mapped where its entry says the name, which entries of such owners do.
// A lookup that fails ends the session: an owner by the number of another host may be somebody else here, whom the files would be
// given to.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "app/session/entry.h"
#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

inline constexpr size_t owner_names_max = 65'536;

class OwnerNames {
 public:
  explicit OwnerNames(size_t kept_max = owner_names_max) : kept_max_(kept_max) {}
  [[nodiscard]] std::optional<Error> map(ports::FileSystem& files, std::vector<session::Entry>& entries);

 private:
  using Numbers = std::unordered_map<uint32_t, uint32_t>;
  std::optional<Error> map_one(ports::FileSystem& files, bool is_group, const std::string& name, uint32_t& id,
                               Numbers& numbers) const;
  const size_t kept_max_;
  Numbers users_, groups_;
};

}  // namespace ccixfer::recv
