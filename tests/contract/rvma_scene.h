// An initiator and a target with a mailbox, for the RVMA cases of the contract.
#pragma once
#include <algorithm>

#include "tests/contract/lab.h"

namespace ccixfer::contract {

inline constexpr uint64_t number = 0x11FF0011;
inline constexpr uint64_t key = 99;

// An initiator with 1 MiB of pattern, a target with mailbox `number`.
struct Scene {
  Lab& lab;
  Node& from;
  Node& to;
  Connection connection;
  std::vector<std::byte> source = pattern(1u << 20, 5);
  std::vector<std::byte> landing = std::vector<std::byte>(1u << 20);
  Handle local, landing_local;
  Handle remote;
  uint64_t context = 0;

  Scene(Lab& l, rvma::MailboxOptions options) : lab(l), from(l.add()), to(l.add()), connection(connect(l, from, to).at_dialler) {
    local = from.memory->register_region(Bytes(source));
    landing_local = from.memory->register_region(MutableBytes(landing), 0);
    options.key = key;
    REQUIRE(mailboxes().open(number, options) == Status::success);
    remote = mailboxes().handle(number);
  }
  rvma::MailboxTable& mailboxes() { return to.endpoint->mailboxes(); }
  uint64_t start(bool write, uint64_t local_offset, uint64_t offset, uint64_t length,
                 uint64_t epoch = ports::PutOperation::any_epoch) {
    cci::RmaOptions options;
    options.write = write;
    options.local = write ? local : landing_local;
    options.local_offset_bytes = local_offset;
    options.remote.handle = remote;
    options.remote.offset_bytes = offset;
    options.remote.put.epoch = epoch;
    options.length_bytes = length;
    options.context = ++context;
    REQUIRE(from.endpoint->rma(connection, options) == Status::success);
    return context;
  }
  Status put(uint64_t local_offset, uint64_t offset, uint64_t length, uint64_t epoch = ports::PutOperation::any_epoch) {
    return wait_send(lab, from, start(true, local_offset, offset, length, epoch));
  }
  ports::OperationResult put_ending(uint64_t offset, uint64_t length, uint64_t epoch = ports::PutOperation::any_epoch) {
    return wait_ending(lab, from, start(true, 0, offset, length, epoch));
  }
  Status get(uint64_t offset, uint64_t length) { return wait_send(lab, from, start(false, 0, offset, length)); }
  bool same(const std::byte* bytes, uint64_t local_offset, size_t length) const {
    return std::equal(bytes, bytes + length, source.begin() + static_cast<long>(local_offset));
  }
};

}  // namespace ccixfer::contract
