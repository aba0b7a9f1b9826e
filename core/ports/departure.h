// What a transport tells the peers of an endpoint that goes away in good order: who reads it knows that nothing was lost on the
// way.
#pragma once
#include <string_view>

namespace ccixfer::ports {

inline constexpr std::string_view words_of_departure = "the endpoint was destroyed";

}  // namespace ccixfer::ports
