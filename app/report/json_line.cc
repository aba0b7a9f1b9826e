#include "app/report/json_line.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace ccixfer::report {

Json begin(std::string_view event, double t) {
  Json json;
  json["event"] = event;
  json["t"] = std::round(t * 1e6) / 1e6;
  return json;
}

std::string line(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

}  // namespace ccixfer::report
