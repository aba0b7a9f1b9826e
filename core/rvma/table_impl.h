// The table behind MailboxTable. Internal to core/rvma: mailbox_table.cc (the owner's calls), admission.cc (which put goes where,
// and which not), placement.cc (counting, publishing).
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "core/rvma/mailbox.h"
#include "core/rvma/nack_limit.h"

namespace ccixfer::rvma {

inline constexpr uint32_t tickets_max = 1u << 20;
inline constexpr size_t hints_max = 1u << 16;  // of a transport; beyond: lost

// Behind a ticket: a fragment that is being placed, or a part of a kept buffer that is being read.
struct Slot {
  enum class Kind : uint8_t { buffer, held, read };
  Kind kind = Kind::buffer;
  Mailbox* mailbox = nullptr;  // buffer: both stay while they have a ticket
  Buffer* buffer = nullptr;
  std::shared_ptr<Held> held;
  uint64_t number = 0;      // held, read: the mailbox, which may have gone
  uint64_t retired_id = 0;  // read
  OperationKey key;
  uint64_t begin = 0;  // as the initiator names it; read: in the buffer
  uint64_t length = 0;
};

struct Tombstone {
  uint64_t key = 0;
  bool negative_acks = true;
  uint64_t stamp = 0;
};

// One fragment that wants in, and what was found out about it.
struct PutAttempt {
  uint64_t connection = 0;
  uint32_t transport = 0;
  const ports::RemoteRef& target;
  uint64_t length_bytes = 0;
  OperationKey key;
  Extent extent{};
  uint64_t epoch = ports::PutOperation::any_epoch;  // told; what goes to a catch-all tells none
  Mailbox* mailbox = nullptr;
  std::shared_ptr<Held> held{};  // it is kept there, not in the head
  bool diverted = false;         // to the catch-all
  bool already_placed = false;
  bool silent = false;                                    // a refusal gets no answer
  uint64_t bound_epoch = ports::PutOperation::any_epoch;  // not known (any more): any_epoch
  uint64_t buffer_bytes = ports::OperationResult::none;   // of the buffer it is too long for

  [[nodiscard]] bool tells_epoch() const { return epoch != ports::PutOperation::any_epoch; }
};

struct MailboxTable::Impl {
  Limits limits;
  Counters& counters;
  RecordWaker* waker = nullptr;
  NackLimit nacks;
  Instant now{};
  std::unordered_map<uint64_t, Mailbox> mailboxes;
  std::optional<uint64_t> catch_all;
  NamedSlots<Slot> slots;                                       // tickets are their names
  RingBuffer<Completion> completions;                           // bound: the buffers posted
  std::unordered_map<uint32_t, RingBuffer<ports::Hint>> hints;  // by transport; none is empty
  std::unordered_map<uint64_t, Tombstone> tombstones;
  RingBuffer<std::pair<uint64_t, uint64_t>> closed_order;  // number, stamp; oldest first
  uint64_t next_stamp = 1;
  uint64_t next_retired_id = 1;

  Impl(Limits l, Counters& c) : limits(l), counters(c), nacks(l.nacks_per_second) {}

  Mailbox* find(uint64_t number);
  Mailbox* find_open(uint64_t number, Status& status);  // nullptr: mailbox_unknown, mailbox_closed
  Mailbox* catch_all_for(uint64_t number);              // nullptr: there is none, or it is this one
  void bury(const Mailbox& mailbox);
  void drop_held(Mailbox& mailbox);

  // admission.cc
  Status admit(PutAttempt& attempt);
  Status admit_addressed(PutAttempt& attempt);
  Status admit_into(PutAttempt& attempt);
  Status admit_bound(const Operation& operation, const PutAttempt& attempt, bool& already_placed) const;
  Status admit_new(PutAttempt& attempt);
  Status admit_to_empty(PutAttempt& attempt);
  Status hold(PutAttempt& attempt);
  Status check_quota(const Mailbox& mailbox, const PutAttempt& attempt);
  Status admit_read(PutAttempt& attempt, Slot& slot);
  // A refusal: counted, perhaps withheld.
  ports::Admission refuse(Status status, const PutAttempt& attempt);
  void bind(Mailbox& mailbox, const OperationKey& key, const Operation& like);
  void unbind(Mailbox& mailbox, Buffer& buffer, const OperationKey& key);
  ports::Ticket issue(Slot slot);
  Slot* slot_of(ports::Ticket ticket);
  Slot retire_slot(ports::Ticket ticket);
  Retired* retired_of(const Slot& slot);

  // placement.cc
  ports::OperationResult end_placing(const Slot& slot, bool complete);
  ports::OperationResult end_holding(const Slot& slot, bool complete);
  void placed(Mailbox& mailbox, Buffer& buffer, const OperationKey& key, uint64_t begin, uint64_t length);
  void settle(Mailbox& mailbox);  // may remove the mailbox: a closed one that is drained
  bool place_held(Mailbox& mailbox);
  void publish(Mailbox& mailbox);
  void cancel(Mailbox& mailbox, Buffer& buffer, uint64_t epoch);
  void tell(const Mailbox& mailbox, const Buffer& buffer, Completion completion);
  void give_hints(Mailbox& mailbox);
};

}  // namespace ccixfer::rvma
