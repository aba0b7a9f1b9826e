// Names that receivers keep for themselves, in every directory and in any case: the staging directory
// and files that are staged beside their targets. A source leaves them out; a destination refuses
// them.
#pragma once
#include <string_view>

namespace ccixfer::session {

inline constexpr std::string_view staging_name = ".ccixfer";
inline constexpr std::string_view part_suffix = ".part";

[[nodiscard]] bool is_reserved_name(std::string_view name);  // one component of a path

}  // namespace ccixfer::session
