// Helpers of the mailbox tests: a put in one call, and what it looks like to a transport.
#pragma once
#include <cstring>
#include <vector>

#include "core/rvma/mailbox_table.h"

namespace ccixfer::rvma {

struct Put {
  uint64_t mailbox = 1;
  uint64_t key = 7;
  uint64_t source = 1;
  uint64_t operation = 0;
  uint64_t epoch = ports::PutOperation::any_epoch;
  uint64_t base = 0;
  uint64_t total = 0;
  uint32_t incarnation = 0;

  [[nodiscard]] ports::RemoteRef at(uint64_t offset) const {
    ports::RemoteRef ref;
    ref.handle.kind = ports::HandleKind::mailbox;
    ref.handle.generation = incarnation;
    ref.handle.number = mailbox;
    ref.handle.key = key;
    ref.offset_bytes = offset;
    ref.put = {source, operation, epoch, base, total};
    return ref;
  }
};

struct Placed {
  Status status = Status::error;
  bool duplicate = false;
};

inline Placed place(MailboxTable& table, const ports::RemoteRef& ref, const std::vector<std::byte>& bytes,
                    uint64_t connection = 1) {
  const ports::Admission admission = table.begin_write(connection, ref, bytes.size());
  if (admission.status != Status::success || admission.already_placed) return {admission.status, admission.already_placed};
  for (size_t at = 0; at < bytes.size();) {
    const MutableBytes span = table.write_span(admission.ticket, at);
    if (span.empty()) break;
    const size_t count = std::min(span.size(), bytes.size() - at);
    std::memcpy(span.data(), bytes.data() + at, count);
    at += count;
  }
  return {table.end_write(admission.ticket, true).status, false};
}

// get: the bytes, or why not.
struct Got {
  Status status = Status::error;
  std::vector<std::byte> bytes;
};
inline Got get(MailboxTable& table, const ports::RemoteRef& ref, uint64_t length) {
  const ports::Admission admission = table.begin_read(1, ref, length);
  Got got{admission.status, {}};
  if (admission.status != Status::success) return got;
  const Bytes span = table.read_span(admission.ticket, 0);
  got.bytes.assign(span.begin(), span.end());
  table.end_read(admission.ticket);
  return got;
}

inline std::vector<std::byte> fill(size_t count, int value) { return std::vector<std::byte>(count, static_cast<std::byte>(value)); }

}  // namespace ccixfer::rvma
