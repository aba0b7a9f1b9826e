// One net of verbs.h: pairs over one card, by the connection manager. In three files: verbs_net.cc (creation, posting, polling,
// waiting), verbs_net_work.cc (what the card has done, and the end of pairs), verbs_net_manager.cc (dialling and accepting).
//
// What the card and the manager tell is first noted (told_), in the order in which it is true, and then reported from poll(): so
// await(), flush() and close() may take completions from the card at any time, and lose none.
//
// A pair that breaks goes through two steps. break_pair() puts its queue pair into the error state, in which the card moves nothing
// any more and gives back all work as flushed. end_pair() destroys it once all of that has come (or the card stays silent for
// flush_limit), and `closed` is the last that is told of it.
//
// Bounds: requests_max undecided requests; batches_per_poll * batch completions, and manager_events_per_poll events a poll.
// Private to transports/verbs.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "transports/inet/address.h"
#include "transports/inet/resolver.h"
#include "transports/verbs/card.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::verbs {

inline constexpr size_t requests_max = 1024;
inline constexpr size_t batch = 32;  // completions that are taken from the card at a time
inline constexpr int batches_per_poll = 16;
inline constexpr int manager_events_per_poll = 64;
// Polls without news before the net asks to be woken and sleeps: to ask costs two system calls, and answers mostly come at once.
inline constexpr uint32_t polls_before_sleep = 128;
inline constexpr Duration dial_limit = std::chrono::seconds(30);  // of one address
inline constexpr Duration flush_limit = std::chrono::seconds(2);
inline constexpr Duration last_receive_limit = std::chrono::milliseconds(10);

class VerbsNet final : public rdma::RdmaNet {
 public:
  [[nodiscard]] static Result<std::unique_ptr<VerbsNet>> create(const VerbsNetOptions& options);
  ~VerbsNet() override;
  VerbsNet(const VerbsNet&) = delete;
  VerbsNet& operator=(const VerbsNet&) = delete;

  [[nodiscard]] const std::string& device() const { return device_; }

  [[nodiscard]] std::string_view scheme() const override { return "verbs"; }
  [[nodiscard]] std::string uri() const override { return uri_; }
  [[nodiscard]] uint32_t send_bytes_max() const override { return card_limits_.slot_bytes; }
  [[nodiscard]] uint32_t receives_max() const override { return card_limits_.receive_slots; }
  [[nodiscard]] uint32_t work_bytes_max() const override { return work_bytes_max_; }
  [[nodiscard]] uint32_t reads_max(rdma::PairId pair) const override;
  [[nodiscard]] Result<rdma::PairId> dial(std::string_view uri) override;
  void accept(rdma::PairId requested) override;
  void close(rdma::PairId id) override;
  [[nodiscard]] bool post_send(rdma::PairId id, std::span<const Bytes> parts) override;
  [[nodiscard]] bool post_read(rdma::PairId id, const rdma::Work& work) override;
  [[nodiscard]] bool post_write(rdma::PairId id, const rdma::Work& work) override;
  [[nodiscard]] uint32_t unsent(rdma::PairId id) const override;
  [[nodiscard]] bool await(rdma::PairId id, uint64_t tag, Duration limit) override;
  [[nodiscard]] bool flush(rdma::PairId id, Duration limit) override;
  [[nodiscard]] Status register_memory(MutableBytes memory, rdma::Access access, rdma::Registration& registration) override;
  void deregister(uint64_t id) override;
  void poll(Instant now, rdma::RdmaEvents& events) override;
  void set_deadline(Instant at) override;
  [[nodiscard]] int os_handle() const override { return watched_.waker().os_handle(); }

 private:
  enum class State : uint8_t {
    naming,      // the name is being looked up
    resolving,   // the manager looks for the device and the way
    connecting,  // it asks the peer
    requested,   // a peer asks, and nobody has answered it
    accepting,   // we have said yes, and the peer has not said that it knows
    open,
    breaking,  // in the error state: the card gives its work back
    ended,     // told as closed in a moment
  };
  enum class Kind : uint8_t { send, read, write };
  struct Posted {  // on the card, which has not completed it
    Kind kind = Kind::send;
    std::optional<uint32_t> slot;  // of a send that does not travel within the work
    uint64_t tag = 0;
  };
  struct Pair {
    rdma::PairId id = 0;
    State state = State::naming;
    ManagerId manager;
    QueuePair queue;
    RingBuffer<Posted> posted;
    uint32_t unsent = 0;
    uint8_t reads_out = 1, reads_in = 1;
    bool is_starved = false;               // post_* has answered false since sendable() was told
    bool may_hold_slot = false;            // the card may be putting a message into a receive slot for it
    std::vector<inet::Address> addresses;  // of a dial: those to be tried yet, the next one last
    uint32_t tries = 0;                    // of a dial that the peer's manager refused as a mistake of its own
    Status end = Status::unreachable;
    std::string words;      // requested: the peer's address; dialling: why the last address failed; breaking and later: why it ends
    Instant limit = never;  // of a dial, or of the flushing
  };
  enum class Told : uint8_t { requested, connected, received, completed, sendable, closed };
  struct News {
    Told what = Told::closed;
    rdma::PairId pair = 0;
    uint64_t tag = 0;    // completed
    uint32_t slot = 0;   // received
    uint32_t bytes = 0;  // received
    rdma::WorkStatus status = rdma::WorkStatus::success;
  };

  struct CardNews {
    ibv_event_type type = IBV_EVENT_COMM_EST;
    rdma::PairId pair = 0;  // 0: of none that is there
    int port = 0;
  };

  VerbsNet(const VerbsNetOptions& options, std::shared_ptr<host::Waker> waker);

  // Creation.
  [[nodiscard]] Result<void> find_device();
  [[nodiscard]] Result<void> listen();
  [[nodiscard]] Result<void> watch();

  [[nodiscard]] Pair* find(rdma::PairId id) const { return pairs_.find(SlotName::of(id)); }
  [[nodiscard]] Pair* of_number(uint32_t pair_number) const;
  Pair& add_pair(State state);
  void tell(Told what, rdma::PairId pair);
  void report(const News& news, rdma::RdmaEvents& events);
  void remove(Pair& pair);

  // Posting.
  [[nodiscard]] bool may_post(Pair& pair, bool has_slot);
  [[nodiscard]] bool has_room(const Pair& pair) const;
  [[nodiscard]] bool post(Pair& pair, ibv_send_wr& work, const Posted& posted);
  [[nodiscard]] bool post_work(rdma::PairId id, Kind kind, const rdma::Work& work);
  template <typename Done>
  [[nodiscard]] bool wait_until(const Done& done, Duration limit);

  // What the card has done (verbs_net_work.cc).
  size_t take_completions(int batches);  // how many; all that there are, unless that is `batches` full ones
  void take_all_completions();
  void take_completion(const ibv_wc& done);
  void take_received(const ibv_wc& done, Pair* pair);
  void take_ended(const ibv_wc& done, Pair& pair);
  void tell_room();
  void note_card_events();
  void take_card_events();
  void take_card_event(const CardNews& news);
  void await_last_receive(const Pair& pair);
  void break_pair(Pair& pair, Status status, std::string reason);
  void end_broken();
  void end_pair(Pair& pair);
  RingBuffer<Posted> release_queue(Pair& pair);  // and the manager's id. What was posted and has not been completed
  static void set_to_error(const Pair& pair);
  [[nodiscard]] bool is_lost() const { return !lost_.empty(); }
  void fail_device(const std::string& reason, bool for_good);

  // Dialling and accepting (verbs_net_manager.cc).
  void take_answers();
  void dial_next(Pair& pair);
  void dial_failed(Pair& pair, Status status, std::string words);
  [[nodiscard]] bool begin_dial(Pair& pair, const inet::Address& to);
  void take_manager_events();
  void take_manager_event(rdma_cm_event_type type, int status, rdma_cm_id* manager, const rdma_conn_param& told);
  void take_refusal(Pair& pair, rdma_cm_event_type type, int status);
  void take_request(rdma_cm_id* manager, const rdma_conn_param& told);
  void ask(Pair& pair);
  void take_response(Pair& pair, const rdma_conn_param& told);
  void opened(Pair& pair);
  [[nodiscard]] bool make_queue(Pair& pair);
  [[nodiscard]] bool move_queue(Pair& pair, ibv_qp_state to) const;
  void expire_dials();

  // Waiting.
  void look();
  void sleep_or_spin(bool is_quiet);
  void arm_watch();
  [[nodiscard]] bool may_guess();

  const VerbsNetOptions options_;
  host::WatchList watched_;  // ends after the descriptors below, which are closed by then
  inet::Address address_;    // of the device, with the port that is listened on
  std::string device_, uri_;
  CardOptions card_limits_;
  uint32_t work_bytes_max_ = 0;
  ManagerChannel manager_;
  std::unique_ptr<Card> card_;
  host::WatchId card_wakes_, card_events_;
  ManagerId listener_;
  SlotTable<Pair> pairs_;
  std::unordered_map<uint32_t, rdma::PairId> by_number_;  // of queue pairs that are there
  RingBuffer<News> told_;
  RingBuffer<CardNews> card_told_;
  bool tells_last_receive_ = true;                 // the card does, until it has failed to
  std::vector<rdma::PairId> dialling_, breaking_;  // these have a limit
  std::vector<rdma::PairId> starved_;
  size_t requests_ = 0;
  uint32_t work_of_all_ = 0;            // posted, and not completed
  std::optional<std::string> failure_;  // of the device, to be reported
  std::string lost_;                    // why the device is gone for good; "": it is there
  std::optional<inet::Resolver> resolver_;
  Instant now_{};
  Instant deadline_ = never;
  bool manager_ready_ = true, card_ready_ = true;  // their descriptors have been readable since they were read empty
  bool is_armed_ = false;                          // the card wakes us with its next completion
  bool has_more_ = false;                          // the card may have completions that were not taken
  uint32_t quiet_polls_ = 0;
  uint32_t guesses_ = 0;
  std::array<ibv_wc, batch> done_{};
};

}  // namespace ccixfer::verbs
