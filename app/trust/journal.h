// Entries for systemd's journal, by its native protocol and without its library.
// Source: systemd.io/JOURNAL_NATIVE_PROTOCOL.
#pragma once
#include <string>

#include "app/trust/audit_record.h"
#include "core/host/descriptor.h"

namespace ccixfer::policy {

inline constexpr const char* journal_socket = "/run/systemd/journal/socket";

// The datagram: each field as NAME, newline, its length (u64, little-endian), the value, newline. This form takes any bytes.
[[nodiscard]] std::string journal_datagram(const JournalFields& fields);

// Is standard error the journal? It is when $JOURNAL_STREAM names its device and inode; processes that only inherited the variable
// are not services. `stream`: the variable, or nullptr.
[[nodiscard]] bool is_journal(const char* stream, int fd);

class Journal {
 public:
  explicit Journal(std::string socket = journal_socket) : socket_(std::move(socket)) {}
  // Never blocks. 0, or the errno of what went wrong.
  [[nodiscard]] int send(const JournalFields& fields);

 private:
  std::string socket_;
  host::Descriptor fd_;
};

}  // namespace ccixfer::policy
