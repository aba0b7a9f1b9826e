#include "transports/verbs/card.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::verbs {
namespace {

constexpr uint32_t work_bytes_bound = 1u << 30;
constexpr uint32_t reads_bound = 16;       // more of them under way make nothing faster
constexpr size_t receives_in_a_post = 16;  // slots are posted again in such numbers

tl::unexpected<Error> cannot(const CardOptions& options, std::string_view what, int error = errno) {
  const char* hint = error == ENOMEM ? ": raise the limit of locked memory (ulimit -l, LimitMEMLOCK= of a service)" : "";
  return fail(ErrorKind::network,
              fmt::format("RDMA device {}: {}: {}{}", options.device, what, std::generic_category().message(error), hint));
}

Device open_named(const std::string& name) {
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(ibv_get_device_list(nullptr), ibv_free_device_list);
  for (ibv_device** device = list.get(); device != nullptr && *device != nullptr; ++device) {
    if (name == ibv_get_device_name(*device)) return Device(ibv_open_device(*device));
  }
  errno = ENODEV;
  return nullptr;
}

uint32_t at_most(uint32_t wanted, int limit) { return std::min(wanted, static_cast<uint32_t>(std::max(limit, 1))); }

bool set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

Card::~Card() = default;

Result<std::unique_ptr<Card>> Card::open(const CardOptions& options) {
  std::unique_ptr<Card> card(new Card(options));
  for (Result<void> (Card::*step)() : {&Card::open_device, &Card::make_queues, &Card::make_slots}) {
    if (auto made = (*card.*step)(); !made) return tl::unexpected<Error>(made.error());
  }
  return card;
}

Result<void> Card::open_device() {
  device_ = open_named(options_.device);
  if (device_ == nullptr) return cannot(options_, "it cannot be opened");
  ibv_device_attr limits{};
  if (const int error = ibv_query_device(device_.get(), &limits); error != 0) return cannot(options_, "it does not answer", error);
  ibv_port_attr port{};
  if (const int error = ibv_query_port(device_.get(), options_.port, &port); error != 0)
    return cannot(options_, "its port does not answer", error);
  is_infiniband_ = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
  work_bytes_max_ = std::min(port.max_msg_sz, work_bytes_bound);
  reads_out_max_ = static_cast<uint8_t>(at_most(reads_bound, limits.max_qp_init_rd_atom));
  reads_in_max_ = static_cast<uint8_t>(at_most(reads_bound, limits.max_qp_rd_atom));
  options_.receive_slots = at_most(options_.receive_slots, limits.max_srq_wr);
  options_.work_of_a_pair = at_most(options_.work_of_a_pair, limits.max_qp_wr);
  options_.work_of_all = at_most(options_.work_of_all, limits.max_cqe - static_cast<int>(options_.receive_slots));
  if (!set_nonblocking(device_->async_fd)) return cannot(options_, "its events cannot be waited for");
  return {};
}

Result<void> Card::make_queues() {
  domain_.reset(ibv_alloc_pd(device_.get()));
  if (domain_ == nullptr) return cannot(options_, "no protection domain");
  channel_.reset(ibv_create_comp_channel(device_.get()));
  if (channel_ == nullptr || !set_nonblocking(channel_->fd)) return cannot(options_, "no completion channel");
  const uint32_t entries = options_.receive_slots + options_.work_of_all;
  completions_.reset(ibv_create_cq(device_.get(), static_cast<int>(entries), nullptr, channel_.get(), 0));
  if (completions_ == nullptr) return cannot(options_, "no completion queue");
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = options_.receive_slots;
  wanted.attr.max_sge = 1;
  receives_.reset(ibv_create_srq(domain_.get(), &wanted));
  if (receives_ == nullptr) return cannot(options_, "no shared receive queue");
  // Whether the card takes bytes within the work is only found out by asking for it.
  if (options_.inline_bytes > 0 && make_pair() == nullptr) options_.inline_bytes = 0;
  if (make_pair() == nullptr) return cannot(options_, "no queue pair");
  return {};
}

Result<void> Card::make_slots() {
  receive_memory_ = memory::BulkMemory(size_t{options_.receive_slots} * options_.slot_bytes);
  send_memory_ = memory::BulkMemory(size_t{options_.send_slots} * options_.slot_bytes);
  const MutableBytes in = receive_memory_.bytes();
  const MutableBytes out = send_memory_.bytes();
  receive_region_.reset(ibv_reg_mr(domain_.get(), in.data(), in.size(), static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE)));
  if (receive_region_ == nullptr) return cannot(options_, "memory for messages cannot be registered");
  send_region_.reset(ibv_reg_mr(domain_.get(), out.data(), out.size(), 0));
  if (send_region_ == nullptr) return cannot(options_, "memory for messages cannot be registered");
  free_sends_.resize(options_.send_slots);
  std::iota(free_sends_.rbegin(), free_sends_.rend(), 0);
  used_receives_.resize(options_.receive_slots);
  std::iota(used_receives_.begin(), used_receives_.end(), 0);
  post_receives();
  if (!used_receives_.empty()) return cannot(options_, "the shared receive queue takes no slots", EINVAL);
  return {};
}

QueuePair Card::make_pair() const {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_.get();
  wanted.srq = receives_.get();
  wanted.cap.max_send_wr = options_.work_of_a_pair;
  wanted.cap.max_send_sge = 1;
  wanted.cap.max_inline_data = options_.inline_bytes;
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  return QueuePair(ibv_create_qp(domain_.get(), &wanted));
}

std::optional<uint32_t> Card::take_send_slot() {
  if (free_sends_.empty()) return std::nullopt;
  const uint32_t slot = free_sends_.back();
  free_sends_.pop_back();
  return slot;
}

void Card::return_send_slot(uint32_t slot) { free_sends_.push_back(slot); }

MutableBytes Card::send_slot(uint32_t slot) const {
  return send_memory_.bytes().subspan(size_t{slot} * options_.slot_bytes, options_.slot_bytes);
}

Bytes Card::received(uint32_t slot, uint32_t length_bytes) const {
  CHECK(slot < options_.receive_slots && length_bytes <= options_.slot_bytes);
  return receive_memory_.bytes().subspan(size_t{slot} * options_.slot_bytes, length_bytes);
}

void Card::repost(uint32_t slot) {
  used_receives_.push_back(slot);
  if (used_receives_.size() >= receives_in_a_post) post_receives();
}

void Card::post_receives() {
  while (!used_receives_.empty()) {
    std::array<ibv_recv_wr, receives_in_a_post> work{};
    std::array<ibv_sge, receives_in_a_post> places{};
    const size_t count = std::min(used_receives_.size(), receives_in_a_post);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t slot = used_receives_[used_receives_.size() - 1 - i];
      const std::byte* at = receive_memory_.bytes().data() + size_t{slot} * options_.slot_bytes;
      places[i] = {reinterpret_cast<uint64_t>(at), options_.slot_bytes, receive_region_->lkey};
      work[i].wr_id = receive_bit | slot;
      work[i].sg_list = &places[i];
      work[i].num_sge = 1;
      work[i].next = i + 1 < count ? &work[i + 1] : nullptr;
    }
    ibv_recv_wr* refused = nullptr;
    const bool all = ibv_post_srq_recv(receives_.get(), work.data(), &refused) == 0;
    const size_t posted = all || refused == nullptr ? count : static_cast<size_t>(refused - work.data());
    used_receives_.resize(used_receives_.size() - posted);
    if (!all) return;  // a card that is gone: slots are of no use then
  }
}

Status Card::add_region(MutableBytes memory, rdma::Access access, rdma::Registration& registration) {
  unsigned rights = 0;
  if (access.local_write || access.remote_write) rights |= IBV_ACCESS_LOCAL_WRITE;
  if (access.remote_read) rights |= IBV_ACCESS_REMOTE_READ;
  if (access.remote_write) rights |= IBV_ACCESS_REMOTE_WRITE;
  Region region(ibv_reg_mr(domain_.get(), memory.data(), memory.size(), rights));
  if (region == nullptr) return Status::no_memory;
  registration = {++last_region_, region->lkey, region->rkey};
  regions_.emplace(last_region_, std::move(region));
  return Status::success;
}

bool Card::remove_region(uint64_t id) {
  const auto found = regions_.find(id);
  CHECK(found != regions_.end());
  if (ibv_dereg_mr(found->second.get()) != 0) return false;
  static_cast<void>(found->second.release());
  regions_.erase(found);
  return true;
}

size_t Card::poll(std::span<ibv_wc> done) {
  const int count = ibv_poll_cq(completions_.get(), static_cast<int>(done.size()), done.data());
  return count < 0 ? 0 : static_cast<size_t>(count);
}

bool Card::arm() { return ibv_req_notify_cq(completions_.get(), 0) == 0; }

void Card::take_wakes() {
  ibv_cq* of = nullptr;
  void* context = nullptr;
  unsigned count = 0;
  while (ibv_get_cq_event(channel_.get(), &of, &context) == 0) ++count;
  // A queue is not destroyed before all of its events are acknowledged.
  if (count > 0) ibv_ack_cq_events(completions_.get(), count);
}

std::optional<Card::Event> Card::next_event() {
  ibv_async_event raw{};
  if (ibv_get_async_event(device_.get(), &raw) != 0) return std::nullopt;
  Event event;
  event.type = raw.event_type;
  switch (raw.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      event.pair_number = raw.element.qp->qp_num;
      break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      event.port = raw.element.port_num;
      break;
    default:
      break;
  }
  ibv_ack_async_event(&raw);
  return event;
}

void Card::shut() {
  regions_.clear();
  send_region_.reset();
  receive_region_.reset();
  receives_.reset();
  completions_.reset();
  channel_.reset();
  domain_.reset();
  device_.reset();
}

}  // namespace ccixfer::verbs
