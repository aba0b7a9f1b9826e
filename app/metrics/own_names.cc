#include "app/metrics/own_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <string>

namespace ccixfer::metrics {

bool is_own_name(std::string_view host) {
  if (host.empty()) return true;
  const size_t end_of_six = host.rfind(']');
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (end_of_six == std::string_view::npos || colon > end_of_six)) host = host.substr(0, colon);
  std::string name(host);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (name == "localhost" || name == "[::1]") return true;
  in_addr four{};
  return ::inet_pton(AF_INET, name.c_str(), &four) == 1 && (ntohl(four.s_addr) >> 24) == 127;
}

}  // namespace ccixfer::metrics
