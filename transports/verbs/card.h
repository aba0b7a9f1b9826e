// One RDMA device as one net uses it: a protection domain, a completion queue with a channel for sleeping, a shared receive queue
// with its slots, slots for sends, and registered memory. All of it is the net's own, also the opened device: nobody else reads
// its events.
//
// In the card's 64 bits for work (wr_id), receives have receive_bit and the number of their slot; the rest is the net's.
// Bounds: work_room() is what may be posted on all queue pairs together, so that the completion queue never overflows.
// Errors: open: network, with what is missing and what helps. Single-threaded. Private to transports/verbs.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/memory/bulk_memory.h"
#include "transports/rdma/rdma_net.h"
#include "transports/verbs/handles.h"

namespace ccixfer::verbs {

inline constexpr uint64_t receive_bit = uint64_t{1} << 63;

struct CardOptions {
  std::string device;  // as ibv_get_device_name() says
  uint8_t port = 1;
  uint32_t receive_slots = 1024;
  uint32_t send_slots = 512;
  uint32_t slot_bytes = 8192;
  uint32_t work_of_a_pair = 256;
  uint32_t work_of_all = 8192;
  uint32_t inline_bytes = 220;  // sends up to this travel within the work itself, where the card can do that
};

class Card {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Card>> open(const CardOptions& options);
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;
  ~Card();

  [[nodiscard]] const std::string& device() const { return options_.device; }
  [[nodiscard]] uint8_t port() const { return options_.port; }
  [[nodiscard]] const CardOptions& options() const { return options_; }  // as the card's own limits allow
  [[nodiscard]] bool is_infiniband() const { return is_infiniband_; }    // its port's link; else Ethernet
  [[nodiscard]] uint32_t work_bytes_max() const { return work_bytes_max_; }
  [[nodiscard]] uint8_t reads_out_max() const { return reads_out_max_; }  // RDMA reads of ours under way on one pair
  [[nodiscard]] uint8_t reads_in_max() const { return reads_in_max_; }    // of the peer's

  [[nodiscard]] QueuePair make_pair() const;  // null: errno says why

  // Sends. nullopt: no slot is free.
  [[nodiscard]] std::optional<uint32_t> take_send_slot();
  void return_send_slot(uint32_t slot);
  [[nodiscard]] bool has_send_slot() const { return !free_sends_.empty(); }
  [[nodiscard]] MutableBytes send_slot(uint32_t slot) const;
  [[nodiscard]] uint32_t send_key() const { return send_region_->lkey; }

  [[nodiscard]] Bytes received(uint32_t slot, uint32_t length_bytes) const;
  void repost(uint32_t slot);  // what stood in it is used up. It is posted with the next ones, or by post_receives()
  void post_receives();

  // no_memory: rejected by the card or by a limit of the system.
  [[nodiscard]] Status add_region(MutableBytes memory, rdma::Access access, rdma::Registration& registration);
  [[nodiscard]] bool remove_region(uint64_t id);  // false: the card did not let go of it

  // What is done, at most so many at a time. How many; fewer than there was room for: there are no more.
  [[nodiscard]] size_t poll(std::span<ibv_wc> done);
  // The channel becomes readable with the next completion. What came before is not told: poll again after it.
  [[nodiscard]] bool arm();
  void take_wakes();  // reads the channel empty
  [[nodiscard]] int channel_descriptor() const { return channel_->fd; }
  [[nodiscard]] int event_descriptor() const { return device_->async_fd; }
  // One event of the device; nullopt: there is none. It is acknowledged: an object that it names may be gone.
  struct Event {
    ibv_event_type type = IBV_EVENT_COMM_EST;
    uint32_t pair_number = 0;  // of events of a queue pair
    int port = 0;              // of events of a port
  };
  [[nodiscard]] std::optional<Event> next_event();

  // Lets go of the device, which has no queue pairs any more: from then on it reads and writes no memory. What was received can
  // still be looked at; nothing else may be called.
  void shut();

 private:
  explicit Card(CardOptions options) : options_(std::move(options)) {}
  [[nodiscard]] Result<void> open_device();
  [[nodiscard]] Result<void> make_queues();
  [[nodiscard]] Result<void> make_slots();

  CardOptions options_;
  bool is_infiniband_ = false;
  uint32_t work_bytes_max_ = 0;
  uint8_t reads_out_max_ = 1;
  uint8_t reads_in_max_ = 1;
  memory::BulkMemory receive_memory_, send_memory_;
  Device device_;
  Domain domain_;
  Channel channel_;
  CompletionQueue completions_;
  ReceiveQueue receives_;
  Region receive_region_, send_region_;
  std::unordered_map<uint64_t, Region> regions_;
  uint64_t last_region_ = 0;
  std::vector<uint32_t> free_sends_;
  std::vector<uint32_t> used_receives_;  // slots to be posted again
};

}  // namespace ccixfer::verbs
