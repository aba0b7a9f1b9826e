// The paper's comparison: how the target learns that data are there. Three ways in turn, operation by operation, so that whatever
// else the hosts do meets all of them alike; each there and back, half of it counted.
//   put       RVMA: one put; the mailbox's completion tells the target
//   message   RMA write with a completion message, which goes out when the write has ended (RVMA §V.A)
//   exchange  ask for an address, get its handle (registered for this write), then as `message`
// Source: RVMA §V.A, Fig. 4 and 5. Deviation: the paper has no figure for the exchange of each write, only for its amortisation.
#include <array>

#include "app/bench/measures.h"

namespace ccixfer::bench {
namespace {

constexpr size_t ways = 3;
constexpr std::array<const char*, ways> way_names{"completion-put", "completion-message", "completion-exchange"};
// Beside the completion message stands the paper's verbs figure; its UCX figure (45.8 %) is printed with it.
constexpr std::array<double, ways> paper_reductions{0, 0.658, 0};

class Completion final : public Measure {
 public:
  explicit Completion(Channel& channel)
      : Measure(channel),
        span_(channel.plan),
        size_bytes_(channel.landing.size()),
        written_(encode_padded(Kind::written, 1)),
        exchange_(encode_padded(Kind::exchange, 1)) {}
  void begin(Instant now) override {
    span_.begin(now);
    measuring_ = span_.warm();
    start(now);
  }
  void on_put(const rvma::Completion& completion, Instant now) override {
    if (completion.status == Status::success && way_ == 0) back(now);
  }
  void on_event(const cci::Event& event, Instant now) override {
    if (event.type == cci::EventType::send) return static_cast<void>(expect_end(event));
    if (event.type != cci::EventType::receive) return;
    const auto kind = kind_of(event.data());
    if (way_ == 1 && kind == Kind::written) return back(now);
    if (way_ != 2) return out_of_turn();
    if (kind == Kind::exchange) {
      static_cast<void>(channel_.endpoint.memory().deregister_region(channel_.address));
      return back(now);
    }
    if (kind == Kind::want) {
      static_cast<void>(channel_.endpoint.memory().deregister_region(channel_.address));
      channel_.address = channel_.endpoint.memory().register_region(channel_.landing, cci::access_write);
      return expect(channel_.endpoint.send(channel_.connection, encode_address(channel_.address), 0, true));
    }
    const auto address = decode_address(event.data());
    if (!address) return out_of_turn();
    write(*address, exchange_);
  }

 private:
  void out_of_turn() {
    fail_with(ErrorKind::protocol, "the peer answered out of turn: " + channel_.uri + ": use the same version");
  }
  void start(Instant now) {
    began_ = now;
    if (way_ == 0) return write(channel_.peer.echo_mailbox, std::nullopt);
    if (way_ == 1) return write(channel_.peer.region, written_);
    expect(channel_.endpoint.send(channel_.connection, encode_want(size_bytes_), 0, true));
  }
  void write(const ports::Handle& where, std::optional<Bytes> completion_message) {
    cci::RmaOptions rma;
    rma.local = channel_.local;
    rma.remote.handle = where;
    rma.length_bytes = size_bytes_;
    rma.completion_message = completion_message;
    rma.silent = true;
    expect(channel_.endpoint.rma(channel_.connection, rma));
  }
  void back(Instant now) {
    ++progress_;
    if (measuring_) samples_[way_].add(now - began_);
    way_ = (way_ + 1) % ways;
    if (way_ == 0) {  // one of each is one operation of the row
      static_cast<void>(span_.ended_one(now));
      if (span_.enough(now)) return finish(now);
      measuring_ = span_.warm();
    }
    start(now);
  }
  void finish(Instant now) {
    finished_ = true;
    const Duration put = samples_[0].percentiles().p50;
    for (size_t way = 0; way < ways; ++way) {
      Row row;
      row.test = way_names[way];
      row.latency_of = "half round trip";
      row.size_bytes = size_bytes_;
      row.count = samples_[way].count();
      row.took = span_.took(now);
      row.latency = samples_[way].percentiles(2);
      const Duration median = samples_[way].percentiles().p50;
      if (way > 0 && median.count() > 0)
        row.reduction = 1.0 - static_cast<double>(put.count()) / static_cast<double>(median.count());
      row.reduction_paper = paper_reductions[way];
      rows_.push_back(row);
    }
  }

  Span span_;
  const uint64_t size_bytes_;
  const std::vector<std::byte> written_, exchange_;
  std::array<Samples, ways> samples_;
  size_t way_ = 0;
  bool measuring_ = false;
  Instant began_{};
};

}  // namespace

std::unique_ptr<Measure> make_completion(Channel& channel) { return std::make_unique<Completion>(channel); }

}  // namespace ccixfer::bench
