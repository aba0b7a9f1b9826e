// Who is told what becomes of the files of a session, one by one: the program's reporter.
#pragma once
#include <cstdint>
#include <string_view>

namespace ccixfer::recv {

class DestinationObserver {
 public:
  virtual ~DestinationObserver() = default;
  virtual void on_file(std::string_view path, uint64_t bytes, std::string_view status, std::string_view reason) = 0;
  virtual void on_warning(std::string_view line) = 0;
};

}  // namespace ccixfer::recv
