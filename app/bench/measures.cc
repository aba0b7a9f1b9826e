// Latency and rate of messages, bandwidth of RMA and puts, and the check before them.
#include "app/bench/measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ccixfer::bench {

void Measure::fail_with(ErrorKind kind, std::string message) {
  if (!error_) error_ = Error{kind, std::move(message)};
}

void Measure::expect(Status status) {
  if (status == Status::success) return;
  fail_with(status == Status::disconnected || status == Status::not_found ? ErrorKind::network : ErrorKind::protocol,
            fmt::format("an operation could not begin ({}): {}: try again", to_string(status), channel_.uri));
}

bool Measure::expect_end(const cci::Event& event) {
  if (event.status == Status::success) return true;
  fail_with(event.status == Status::disconnected ? ErrorKind::network : ErrorKind::protocol,
            fmt::format("an operation failed ({}): {}: try again", to_string(event.status), channel_.uri));
  return false;
}

void Span::begin(Instant now) {
  began_ = measured_from_ = now;
  warm_ = plan_.count != 0;
  count_ = 0;
}

bool Span::ended_one(Instant now) {
  if (!warm_) {
    warm_ = now - began_ >= plan_.row_time / 10;
    measured_from_ = now;
    return false;
  }
  ++count_;
  return true;
}

bool Span::enough(Instant now) const {
  return plan_.count != 0 ? count_ >= plan_.count : count_ >= samples_max || now - measured_from_ >= plan_.row_time;
}

namespace {

class Check final : public Measure {
 public:
  using Measure::Measure;
  ~Check() override { static_cast<void>(channel_.endpoint.memory().deregister_region(region_)); }
  void begin(Instant) override {
    uint64_t state = 0x9e3779b97f4a7c15ull;
    const auto size = static_cast<size_t>(channel_.slot_bytes);
    for (size_t i = 0; i < size; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      channel_.memory.bytes()[i] = static_cast<std::byte>(state >> 56);
    }
    back_.resize(size);
    region_ = channel_.endpoint.memory().register_region(back_, 0);
    operate(true, channel_.local);
  }
  void on_event(const cci::Event& event, Instant) override {
    if (event.type != cci::EventType::send || !expect_end(event)) return;
    ++progress_;
    if (!reading_) {
      reading_ = true;
      return operate(false, region_);
    }
    finished_ = true;
    if (std::memcmp(back_.data(), channel_.memory.bytes().data(), back_.size()) != 0) {
      fail_with(ErrorKind::integrity,
                fmt::format("what was written came back changed: {}: check memory and network", channel_.uri));
    }
  }

 private:
  void operate(bool write, const ports::Handle& local) {
    cci::RmaOptions rma;
    rma.write = write;
    rma.local = local;
    rma.remote.handle = channel_.peer.region;
    rma.length_bytes = channel_.slot_bytes;
    expect(channel_.endpoint.rma(channel_.connection, rma));
  }
  std::vector<std::byte> back_;
  ports::Handle region_;
  bool reading_ = false;
};

// One message there, one back, one at a time.
class Latency final : public Measure {
 public:
  Latency(Channel& channel, uint32_t message_bytes)
      : Measure(channel), span_(channel.plan), message_(encode_padded(Kind::echo, message_bytes)) {}
  void begin(Instant now) override {
    span_.begin(now);
    send(now);
  }
  void on_event(const cci::Event& event, Instant now) override {
    if (event.type == cci::EventType::send) return static_cast<void>(expect_end(event));
    if (event.type != cci::EventType::receive) return;
    ++progress_;
    if (span_.ended_one(now)) samples_.add(now - sent_at_);
    if (!span_.enough(now)) return send(now);
    finished_ = true;
    Row row;
    row.test = to_string(Test::message_latency);
    row.latency_of = "half round trip";
    row.size_bytes = message_.size();
    row.count = samples_.count();
    row.took = span_.took(now);
    row.latency = samples_.percentiles(2);
    rows_.push_back(row);
  }

 private:
  void send(Instant now) {
    sent_at_ = now;
    expect(channel_.endpoint.send(channel_.connection, message_, 0, true));
  }
  Span span_;
  const std::vector<std::byte> message_;
  Samples samples_;
  Instant sent_at_{};
};

// `depth` operations in flight, each followed by another one.
class Flow final : public Measure {
 public:
  Flow(Channel& channel, Test test, uint64_t size_bytes)
      : Measure(channel),
        test_(test),
        size_bytes_(size_bytes),
        span_(channel.plan),
        message_(encode_padded(Kind::count, static_cast<uint32_t>(size_bytes))) {}
  void begin(Instant now) override {
    span_.begin(now);
    for (uint32_t slot = 0; slot < channel_.plan.depth; ++slot) start(slot);
  }
  void on_event(const cci::Event& event, Instant now) override {
    if (event.type != cci::EventType::send) return;
    --in_flight_;
    if (test_ == Test::rvma_put && event.status == Status::mailbox_empty) {  // the peer has not posted its buffers again yet
      ++again_;
      return start(static_cast<uint32_t>(event.context));
    }
    if (!expect_end(event)) return;
    ++progress_;
    if (!measured_) {
      static_cast<void>(span_.ended_one(now));
      if (span_.enough(now)) {
        measured_ = true;
        took_ = span_.took(now);
      } else {
        return start(static_cast<uint32_t>(event.context));
      }
    }
    if (in_flight_ == 0) finish();
  }

 private:
  void start(uint32_t slot) {
    ++in_flight_;
    if (test_ == Test::message_rate) return expect(channel_.endpoint.send(channel_.connection, message_, slot));
    cci::RmaOptions rma;
    rma.write = test_ != Test::rma_read;
    rma.local = channel_.local;
    rma.local_offset_bytes = slot % channel_.slots * channel_.slot_bytes;
    rma.remote.handle = test_ == Test::rvma_put ? channel_.peer.mailbox : channel_.peer.region;
    rma.remote.offset_bytes = test_ == Test::rvma_put ? 0 : rma.local_offset_bytes;
    rma.length_bytes = size_bytes_;
    rma.context = slot;
    expect(channel_.endpoint.rma(channel_.connection, rma));
  }
  void finish() {
    finished_ = true;
    Row row;
    row.test = to_string(test_);
    row.size_bytes = test_ == Test::message_rate ? message_.size() : size_bytes_;
    row.depth = channel_.plan.depth;
    row.count = span_.count();
    row.again = again_;
    row.took = took_;
    rows_.push_back(row);
  }
  const Test test_;
  const uint64_t size_bytes_;
  Span span_;
  const std::vector<std::byte> message_;
  uint32_t in_flight_ = 0;
  uint64_t again_ = 0;
  bool measured_ = false;
  Duration took_{0};
};

}  // namespace

std::unique_ptr<Measure> make_check(Channel& channel) { return std::make_unique<Check>(channel); }
std::unique_ptr<Measure> make_latency(Channel& channel, uint32_t message_bytes) {
  return std::make_unique<Latency>(channel, message_bytes);
}
std::unique_ptr<Measure> make_message_rate(Channel& channel) {
  return std::make_unique<Flow>(channel, Test::message_rate, channel.plan.message_bytes);
}
std::unique_ptr<Measure> make_bandwidth(Channel& channel, Test test, uint64_t size_bytes) {
  return std::make_unique<Flow>(channel, test, size_bytes);
}

}  // namespace ccixfer::bench
