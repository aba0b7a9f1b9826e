// The RMA operations that this end of a connection initiated. A pure machine: which may start (fences), which operation an answer
// of the peer means, how each ends. Slots are bounded by the negotiated rmas_in_flight_max. Guarantees: one end for each operation;
// local memory is not touched after it. A completion message is pushed only after success, and the operation ends when it was
// delivered. Source: CCI §III.C.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "core/ports/transport.h"
#include "core/reliability/message_window.h"
#include "core/wire/rma_frames.h"

namespace ccixfer::connection {

using reliability::copy_message;
using reliability::MessageBytes;
using reliability::MessageOwner;
using reliability::MessageReceiver;
using reliability::MessageSender;

class RmaInitiator {
 public:
  enum class Phase : uint8_t {
    waiting,       // for a fence, its own or an earlier one's
    sending,       // write: chunks are going out
    asked,         // read: the request is out or about to go
    awaiting_end,  // write: all is with the network
    announcing,    // the completion message is on its way
  };
  struct Operation {
    Phase phase = Phase::waiting;
    bool write = false;
    bool fence = false;
    bool requested = false;  // read: the request was taken
    bool refused = false;    // the target refused early: end it with an empty chunk
    bool announces = false;
    bool source_is_file = false;
    bool local_completion = false;  // is to be told once all is with the network; so nothing of it is lent
    uint64_t token = 0;
    uint64_t issue = 0;  // which one it is in the order of issue
    ports::RemoteRef remote;
    Bytes source;
    MutableBytes destination;
    ports::MemoryKey key;  // of the network's card, for the source or the destination
    ports::FillProgress* fill = nullptr;
    uint64_t total_bytes = 0;
    uint64_t done_bytes = 0;  // write: put into chunks; read: arrived
    uint64_t lent_until = 0;  // in the bytes that the network took: so far it may refer to the source
    uint64_t messages_before = 0;
    MessageBytes announcement;
    ports::OperationResult ending;  // announcing: what the target said
  };
  using Ended = std::function<void(uint64_t token, ports::OperationResult)>;

  void open(uint32_t slots_max) { slots_max_ = slots_max; }
  [[nodiscard]] bool full() const { return in_use() >= slots_max_; }
  void push(const ports::RmaRequest& request, uint64_t token, uint64_t messages_issued);
  // Whether a fence that is not passed yet is among the first `issued` operations: later messages wait for it.
  [[nodiscard]] uint64_t issued() const { return issued_; }
  [[nodiscard]] bool fence_before(uint64_t issued) const;
  void start(uint64_t messages_ended);  // what no fence holds back: its chunks, or its request, are due

  // The slots of operations with something to send. A write whose next chunk has not arrived here yet waits for resume().
  [[nodiscard]] bool write_due() const { return work_ != nullptr && !work_->writes.empty(); }
  [[nodiscard]] uint32_t next_write() { return work_->writes.pop_front(); }  // write_due() only
  void write_goes_on(uint32_t slot) { work_->writes.push_front(slot); }
  void write_waits(uint32_t slot) { work_->waiting_writes.push_back(slot); }
  void resume();
  [[nodiscard]] bool request_due() const { return work_ != nullptr && !work_->requests.empty(); }
  [[nodiscard]] uint32_t next_request();  // request_due() only

  [[nodiscard]] Operation& at(uint32_t slot) { return work_->operations[slot]; }
  [[nodiscard]] uint32_t id(uint32_t slot) const { return work_->operations.name_of(slot).generation << 16 | slot; }
  // nullptr: no such operation in flight, or not a write (read).
  [[nodiscard]] Operation* find(uint32_t id, bool write);
  [[nodiscard]] static uint32_t slot_of(uint32_t id) { return id & 0xffff; }

  void all_sent(uint32_t slot);  // write: the last chunk is with the network, or it was given up
  // The target said how it ended. Pushes the completion message, or ends it.
  void finish(uint32_t slot, ports::OperationResult ending, MessageSender& messages, Duration send_timeout, const Ended& ended);
  void cancel(uint32_t slot, const Ended& ended);                    // a write of which nothing has been sent
  void announced(uint32_t slot, Status status, const Ended& ended);  // the completion message ended
  void fail_all(Status status, const Ended& ended);                  // in order of issue

  [[nodiscard]] bool empty() const { return in_use() == 0; }

 private:
  void end(uint32_t slot, ports::OperationResult ending, const Ended& ended);

  [[nodiscard]] size_t in_use() const { return work_ == nullptr ? 0 : work_->operations.in_use(); }

  // From the first operation on: most connections never have one.
  struct Work {
    NamedSlots<Operation, UINT16_MAX> operations;
    RingBuffer<uint32_t> waiting;  // for a fence
    RingBuffer<uint32_t> writes;
    RingBuffer<uint32_t> waiting_writes;
    RingBuffer<uint32_t> requests;
    uint32_t active = 0;  // started and not ended
  };
  std::unique_ptr<Work> work_;
  uint32_t slots_max_ = 0;
  uint64_t issued_ = 0;
};

}  // namespace ccixfer::connection
