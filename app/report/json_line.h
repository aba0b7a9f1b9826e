// The frame of every event of --json. Private to this room.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ccixfer::report {

using Json = nlohmann::ordered_json;

[[nodiscard]] Json begin(std::string_view event, double t);
// ASCII only, so that no terminal or log makes two lines of it.
[[nodiscard]] std::string line(const Json& json);

}  // namespace ccixfer::report
