#include "app/bench/asker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/bench/failed_connect.h"
#include "app/bench/measures.h"
#include "core/base/units.h"

namespace ccixfer::bench {
namespace {

bool of_messages(Test test) { return test == Test::message_latency || test == Test::message_rate || test == Test::completion; }

std::vector<uint64_t> powers_of_two_to(uint64_t last) {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes = 1; bytes < last; bytes *= 2) sizes.push_back(bytes);
  sizes.push_back(last);
  return sizes;
}

}  // namespace

Asker::Asker(cci::Endpoint& endpoint, ports::Entropy& entropy, Plan plan, std::string uri)
    : endpoint_(endpoint),
      entropy_(entropy),
      plan_(std::move(plan)),
      channel_(std::make_unique<Channel>(Channel{endpoint, plan_, std::move(uri), {}, {}, 0, 0, {}, {}, {}, {}, {}, 0})) {}

Asker::~Asker() = default;

Wait Asker::peer_wait() const { return channel_->peer.wait; }
bool Asker::wants_spin() const { return measure_ != nullptr && next_test_ > 0 && plan_.tests[next_test_ - 1] == Test::empty_turn; }

void Asker::turn(Instant now) {
  if (ended_) return;
  if (!begun_) {
    begun_ = true;
    give_up_ = after(now, plan_.timeout);
    const std::vector<std::byte> hello = encode_hello(Purpose::session);
    cci::ConnectOptions options;
    options.data = hello;
    options.timeout = plan_.timeout;
    const auto connection = endpoint_.connect(channel_->uri, options);
    if (!connection) return end(connection.error());
  }
  endpoint_.turn(now);
  again_at_ = never;
  take_events(now);
  if (measure_ != nullptr && !ended_) measure_->on_turn(now);
  judge(now);
  if (ended_) endpoint_.turn(now);  // our goodbye goes out
}

void Asker::take_events(Instant now) {
  while (!ended_) {
    auto event = endpoint_.get_event();
    if (!event) break;
    handle(*event, now);
  }
  while (!ended_) {
    const auto completion = endpoint_.mailboxes().next_completion();
    if (!completion) break;
    on_put(*completion, now);
  }
}

void Asker::handle(const cci::Event& event, Instant now) {
  if (event.context == extra_context && measure_ != nullptr) return measure_->on_event(event, now);
  if (event.type == cci::EventType::connect) return on_connect(event);
  if (event.type == cci::EventType::disconnected) {
    return end({opened_ ? ErrorKind::network : ErrorKind::no_answer,
                fmt::format("the peer has gone ({}): {}: see that it runs, and try again",
                            event.reason.empty() ? to_string(event.status) : printable(event.reason), channel_->uri)});
  }
  if (event.type == cci::EventType::receive && !opened_) return on_opened(event);
  if (measure_ != nullptr) measure_->on_event(event, now);
}

void Asker::on_connect(const cci::Event& event) {
  if (event.status != Status::success) {
    return end(failed_connect(event.status, event.reason, channel_->uri,
                              "check that `ccixfer bench --serve` runs there and can be reached"));
  }
  channel_->connection = event.connection;
  const uint32_t longest = endpoint_.max_send_bytes(event.connection);
  const bool messages = std::any_of(plan_.tests.begin(), plan_.tests.end(), of_messages);
  if (messages && plan_.message_bytes > longest) {
    return end({ErrorKind::usage, fmt::format("bad value: --message-size {}: a message on this path has at most {} bytes",
                                              plan_.message_bytes, longest)});
  }
  message_sizes_bytes_ = plan_.sweeps_messages ? powers_of_two_to(longest) : std::vector<uint64_t>{plan_.message_bytes};
  open_session();
}

void Asker::open_session() {
  Channel& channel = *channel_;
  channel.slot_bytes = plan_.message_bytes;
  for (const Test test : plan_.tests) {
    if (has_bytes_a_second(test))
      channel.slot_bytes = std::max(channel.slot_bytes, *std::max_element(plan_.sizes_bytes.begin(), plan_.sizes_bytes.end()));
  }
  channel.slots = static_cast<uint32_t>(std::clamp<uint64_t>(memory_bytes_max / channel.slot_bytes, 1, plan_.depth));
  auto memory = memory::BulkMemory::make(static_cast<size_t>(channel.slots * channel.slot_bytes));
  if (!memory) return end(memory.error());
  channel.memory = std::move(*memory);
  channel.landing.resize(plan_.message_bytes);
  channel.local = endpoint_.memory().register_region(channel.memory.bytes(), 0);
  channel.landing_region = endpoint_.memory().register_region(channel.landing, cci::access_write);
  rvma::MailboxOptions options;
  options.key = entropy_.next_u64();
  do channel.mailbox = entropy_.next_u64();
  while (endpoint_.mailboxes().open(channel.mailbox, options) != Status::success);
  for (int i = 0; i < 2; ++i) static_cast<void>(endpoint_.mailboxes().post(channel.mailbox, channel.landing, 0));

  Open open;
  open.slot_bytes = channel.slot_bytes;
  open.slots = channel.slots;
  open.buffers = 4 * plan_.depth;
  open.reply_bytes = plan_.message_bytes;
  open.landing = channel.landing_region;
  open.mailbox = endpoint_.mailboxes().handle(channel.mailbox);
  if (endpoint_.send(channel.connection, encode(open), 0, true) != Status::success) {
    end({ErrorKind::network, fmt::format("the session could not be opened: {}: try again", channel.uri)});
  }
}

void Asker::on_opened(const cci::Event& event) {
  const auto opened = decode_opened(event.data());
  if (!opened) {
    return end(
        {ErrorKind::protocol, fmt::format("the peer answered something else: {}: use the same version there", channel_->uri)});
  }
  channel_->peer = *opened;
  hops_ = endpoint_.hops(channel_->connection);
  opened_ = true;
}

void Asker::on_put(const rvma::Completion& completion, Instant now) {
  if (completion.mailbox != channel_->mailbox) return;
  static_cast<void>(endpoint_.mailboxes().post(channel_->mailbox, channel_->landing, 0));
  if (measure_ != nullptr) measure_->on_put(completion, now);
}

// One, of any size, for a test that is not measured by size.
const std::vector<uint64_t>& Asker::sizes_of(Test test) const {
  static const std::vector<uint64_t> one{0};
  if (test == Test::message_latency) return message_sizes_bytes_;
  return has_bytes_a_second(test) ? plan_.sizes_bytes : one;
}

void Asker::next_measure(Instant now) {
  measure_.reset();
  again_at_ = now;  // what is wrong with its beginning is judged in the next turn
  if (!checked_) {
    checked_ = true;
    measure_ = make_check(*channel_);
    return measure_->begin(now);
  }
  const bool more_sizes = next_test_ > 0 && next_size_ < sizes_of(plan_.tests[next_test_ - 1]).size();
  if (!more_sizes) {
    if (next_test_ == plan_.tests.size()) {
      endpoint_.disconnect(channel_->connection);
      return end({ErrorKind::ok, ""});
    }
    ++next_test_;
    next_size_ = 0;
  }
  const Test test = plan_.tests[next_test_ - 1];
  const uint64_t size_bytes = sizes_of(test)[next_size_++];
  switch (test) {
    case Test::message_latency:
      measure_ = make_latency(*channel_, static_cast<uint32_t>(size_bytes));
      break;
    case Test::message_rate:
      measure_ = make_message_rate(*channel_);
      break;
    case Test::rma_write:
    case Test::rma_read:
    case Test::rvma_put:
      measure_ = make_bandwidth(*channel_, test, size_bytes);
      break;
    case Test::completion:
      measure_ = make_completion(*channel_);
      break;
    case Test::connect:
      measure_ = make_connect(*channel_);
      break;
    case Test::empty_turn:
      measure_ = make_empty_turn(*channel_);
      break;
  }
  measure_->begin(now);
}

void Asker::judge(Instant now) {
  if (ended_) return;
  if (measure_ != nullptr) {
    if (measure_->error()) return end(*measure_->error());
    if (measure_->progress() != progress_) {
      progress_ = measure_->progress();
      give_up_ = after(now, plan_.timeout);
    }
    for (Row& row : measure_->take_rows()) rows_.push_back(std::move(row));
  }
  if (opened_ && (measure_ == nullptr || measure_->finished())) {
    next_measure(now);
    progress_ = 0;
    if (!ended_) give_up_ = after(now, plan_.timeout);
    return;
  }
  if (now < give_up_) return;
  end({opened_ ? ErrorKind::timeout : ErrorKind::no_answer,
       fmt::format("nothing moved within the timeout: {}: check that `ccixfer bench --serve` runs there and can be reached",
                   channel_->uri)});
}

Instant Asker::next_deadline() const { return ended_ ? never : std::min({endpoint_.next_deadline(), give_up_, again_at_}); }

std::optional<Row> Asker::next_row() {
  if (rows_.empty()) return std::nullopt;
  Row row = std::move(rows_.front());
  rows_.drop_front();
  return row;
}

void Asker::end(Error error) {
  if (ended_) return;
  ended_ = true;
  error_ = std::move(error);
}

}  // namespace ccixfer::bench
