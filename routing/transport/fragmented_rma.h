// The RMA operations of one routed connection, at the initiator. Each is cut into fragments, once,
// and the fragments of several operations take turns. A write's fragment is exposed until the next
// router has it. A read's is pulled from the next router. All the state of an operation is here.
// In: requests, and what the routers say of each fragment. Out: FragmentedRma::Way.
// Guarantees: each operation ends once, and no network refers to its memory then. After a failure
// no more of its fragments begin.
// Errors: `unknown` is a message about a fragment that there is not, `violation` one that no router
// may send. Both are the peer's fault, and change nothing.
// Single-threaded. Bounds: operations by the caller, fragments by what issue() is given.
// Source: routing §VII.C; routing/transport/README.md 'RMA'.
#pragma once
#include <unordered_map>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/cci/memory_table.h"
#include "core/ports/transport.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

class FragmentedRma {
 public:
  struct Ended {
    uint64_t token = 0;
    ports::OperationResult ending{Status::success};
    bool has_completion_message = false;  // only of a success
    std::vector<std::byte> completion_message;
  };
  struct Read {  // of a fragment, from the next router
    ports::Handle local;
    uint64_t local_offset_bytes = 0;
    ports::Handle exposed;
    uint32_t length_bytes = 0;
    uint64_t cookie = 0;
  };
  // What the operations need of their connection. Of these calls only ended() may come back into
  // the object, to start() operations that waited for this one.
  class Way {
   public:
    virtual void post(std::vector<std::byte> message) = 0;
    [[nodiscard]] virtual Status read(const Read& read) = 0;  // no_buffers: begin_reads() tries again
    virtual void source_is_free(uint64_t token) = 0;          // of a write that asked for it
    virtual void lends() = 0;                                 // release_lent() has something to look at
    virtual void has_work() = 0;                              // issue() or begin_reads() may go on
    virtual void ended(const Ended& ended) = 0;

   protected:
    ~Way() = default;
  };
  enum class Verdict : uint8_t { fine, unknown, violation };

  explicit FragmentedRma(cci::MemoryTable& memory) : memory_(memory) {}
  ~FragmentedRma();  // withdraws all memory
  FragmentedRma(const FragmentedRma&) = delete;
  FragmentedRma& operator=(const FragmentedRma&) = delete;

  // The operation's number. It begins with start(). 0: the table of regions is full.
  [[nodiscard]] uint64_t add(const ports::RmaRequest& request, uint64_t token, uint32_t fragment_bytes_max);
  void start(uint64_t number) { issuing_.push_back(number); }
  void issue(uint32_t fragments_in_flight_max, Way& way);
  void begin_reads(Way& way);

  [[nodiscard]] Verdict released(uint64_t cookie, Way& way);
  [[nodiscard]] Verdict acknowledged(const FragmentAck& ack, Way& way);
  [[nodiscard]] Verdict replied(const FragmentMessage& reply, Way& way);
  void read_ended(uint64_t cookie, Status status, Way& way);
  // What the network below referred to may be free meanwhile. true: some of it was.
  [[nodiscard]] bool release_lent(Way& way);

  // The connection is over. Nothing is exposed from now on, and no fragment begins. An operation
  // whose memory the network below still uses stays until read_ended() or release_lent().
  void withdraw_all(Way& way);
  void end_unused(Way& way);  // those that do not stay

  [[nodiscard]] size_t size() const { return operations_.size(); }
  [[nodiscard]] bool has_lent() const;
  [[nodiscard]] bool has_ready_reads() const { return !ready_reads_.empty(); }

 private:
  struct Operation {
    uint64_t token = 0;
    ports::RmaRequest request;
    std::vector<std::byte> completion_message;
    ports::Handle local;  // read: the destination, for the lower endpoint's reads
    uint64_t length_bytes = 0;
    uint32_t fragment_bytes = 0;
    uint64_t next_offset_bytes = 0;  // of the first fragment that is not under way
    uint32_t in_flight = 0;
    // A put of several fragments is admitted once its first one is placed, and bound to an epoch.
    // Only then the rest goes.
    bool admitted = true;
    uint32_t exposed = 0;             // fragments of a write that the next router may still read
    std::vector<ports::Handle> lent;  // exposed no more, and the network below still refers to bytes of the source
    uint32_t reads_below = 0;         // lower reads that may still write into the destination
    // The first failure; then nothing more is begun. Until then: the epoch, once an answer told it.
    ports::OperationResult ending{Status::success};
  };
  struct Fragment {
    uint64_t operation = 0;
    uint64_t offset_bytes = 0;
    uint32_t length_bytes = 0;
    ports::Handle exposed;  // write: until `fragment_released`
    bool reading = false;   // read: the next router has it, and the lower read is under way or about to be
  };

  [[nodiscard]] bool begin_fragment(uint64_t number, Operation& operation, Way& way);
  void withdraw(Fragment& fragment, Way& way);
  void unexpose(Fragment& fragment, Way& way);
  static void tell_if_free(const Operation& operation, Way& way);
  void end_fragment(uint64_t cookie, ports::OperationResult ending, Way& way);
  void try_end(uint64_t number, Way& way);

  cci::MemoryTable& memory_;
  std::unordered_map<uint64_t, Operation> operations_;  // by number
  uint64_t next_operation_ = 1;
  RingBuffer<uint64_t> issuing_;                      // operations with fragments left to begin, in turns
  std::unordered_map<uint64_t, Fragment> fragments_;  // by cookie
  uint64_t next_cookie_ = 1;
  RingBuffer<FragmentMessage> ready_reads_;  // read_reply came; the lower read has not begun
  bool over_ = false;
};

}  // namespace ccixfer::routing
