// The entries of a receipt that is to be written, in a temporary database of SQLite: memory is bounded, whatever the size of the
// tree, and they come out in order. Each session of a transfer tells all of the tree, so begin() forgets what an earlier one told.
// write() makes the receipt: a file beside it is written and synced, and takes its name. What stood there is whole until then.
// Errors: file_io, no_space. Bound: cache_kib of memory. Thread: one at a time.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "app/receipt/format.h"
#include "core/ports/file_system.h"
#include "core/trust/identity.h"

namespace ccixfer::receipt {

inline constexpr int cache_kib = 4096;

// What a receipt does not say.
struct Gaps {
  uint64_t without_digest = 0;  // files that are listed
  uint64_t unlisted = 0;        // entries that are not
  friend bool operator==(const Gaps&, const Gaps&) = default;
};

class Book final : public Sink {
 public:
  Book();
  ~Book() override;
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;

  void begin(std::string_view transfer);  // a session of that transfer, which tells all of it
  void on_entry(const Entry& entry) override;
  void on_unlisted() override;
  // No identity: nobody signs it.
  [[nodiscard]] Result<Gaps> write(ports::FileSystem& files, const std::string& file, const Header& header,
                                   const std::optional<trust::Identity>& identity);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::receipt
