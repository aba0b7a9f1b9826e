// Who is told of each file while a session moves it.
#pragma once
#include <cstdint>
#include <string_view>

#include "app/session/item.h"

namespace ccixfer::send {

class SourceObserver {
 public:
  virtual ~SourceObserver() = default;
  virtual void on_file(std::string_view path, uint64_t bytes, std::string_view status /* ok unchanged failed */,
                       std::string_view reason) = 0;
  // What failed in an earlier session of the transfer, and was told then, fails in this one too: whatever else comes of it.
  virtual void on_failed_again(std::string_view /*path*/) {}
  virtual void on_item(const session::ItemLine&) {}  // with option_itemize: of each entry to which something is done
  virtual void on_warning(std::string_view line) = 0;
  virtual void on_failure(std::string_view line) = 0;  // of what counts as failed, and is no file of its own
};

}  // namespace ccixfer::send
