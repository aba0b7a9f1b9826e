// The master property: under random drop, duplication, reordering, breaking and splitting of the puts over several paths, the
// published (epoch, length, count, content) of every mailbox equals that of a lossless in-order model: steered or managed, of
// operations or bytes, gross or unique, refused or held while no buffer is posted, told through records or the table. A failure
// prints its seed; it becomes a case of its own.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <random>

#include "tests/unit/rvma/place.h"

using namespace ccixfer;
using namespace ccixfer::rvma;

namespace {

constexpr size_t buffer_bytes = 96;
constexpr std::byte untouched{0xee};
using Random = std::mt19937_64;

uint64_t pick(Random& random, uint64_t below) { return random() % below; }
bool chance(Random& random, uint64_t percent) { return pick(random, 100) < percent; }

struct PlannedPut {
  Put put;  // epoch is the expected one even when it is not told
  uint64_t length = 0;
  std::byte value{};
};

struct Published {
  uint64_t epoch = 0, length = 0, count = 0;
  bool holes = false;
  std::vector<std::byte> content;
  bool operator==(const Published&) const = default;
};

constexpr uint64_t paths = 4;

struct Plan {
  Placement placement = Placement::steered;
  bool unique = false;
  bool hold = false;
  bool records = false;
  ThresholdType type = ThresholdType::operations;
  uint64_t threshold = 1;
  bool tell_epoch = true;
  std::vector<std::vector<PlannedPut>> epochs;
};

// Puts of one epoch lie in disjoint places: what they leave does not depend on their order.
Plan make_plan(Random& random, uint64_t mailbox) {
  Plan plan;
  plan.tell_epoch = chance(random, 60);
  plan.placement = chance(random, 35) ? Placement::managed : Placement::steered;
  plan.unique = chance(random, 30);
  plan.hold = chance(random, 40);
  plan.records = chance(random, 50);
  plan.type = chance(random, 50) ? ThresholdType::operations : ThresholdType::bytes;
  const uint64_t puts = 1 + pick(random, 4);
  const uint64_t room = buffer_bytes / puts;
  const uint64_t even_length = 1 + pick(random, room);
  plan.threshold = plan.type == ThresholdType::operations ? puts : puts * even_length;
  // Numbers of a source grow, or come in any order.
  std::map<uint64_t, std::vector<uint64_t>> numbers;
  for (uint64_t source = 1; source <= 3; ++source) {
    for (uint64_t n = 64; n-- > 0;) numbers[source].push_back(n);
    if (chance(random, 50)) std::shuffle(numbers[source].begin(), numbers[source].end(), random);
  }
  for (uint64_t epoch = 0, count = 2 + pick(random, 8); epoch < count; ++epoch) {
    auto& list = plan.epochs.emplace_back();
    for (uint64_t i = 0; i < puts; ++i) {
      PlannedPut planned;
      planned.put.mailbox = mailbox;
      planned.put.source = 1 + pick(random, 3);
      planned.put.operation = numbers[planned.put.source].back();
      numbers[planned.put.source].pop_back();
      planned.put.epoch = epoch;
      planned.length = plan.type == ThresholdType::operations ? 1 + pick(random, room) : even_length;
      planned.put.base = i * room + pick(random, room - planned.length + 1);
      planned.put.total = planned.length;
      planned.value = static_cast<std::byte>(1 + pick(random, 200));
      list.push_back(planned);
    }
  }
  return plan;
}

// In order, lossless, one put at a time. Knows nothing of fragments, tickets and states.
std::vector<Published> model(const Plan& plan) {
  std::vector<Published> all;
  for (size_t epoch = 0; epoch < plan.epochs.size(); ++epoch) {
    Published published{epoch, 0, 0, false, std::vector<std::byte>(buffer_bytes, untouched)};
    std::vector<bool> covered(buffer_bytes);
    uint64_t cursor = 0;
    for (const PlannedPut& p : plan.epochs[epoch]) {
      const uint64_t begin = plan.placement == Placement::managed ? cursor : p.put.base;
      for (uint64_t i = 0; i < p.length; ++i) {
        published.content[begin + i] = static_cast<std::byte>(static_cast<uint64_t>(p.value) + p.put.base + i);
        covered[begin + i] = true;
      }
      cursor += p.length;
      published.length = std::max(published.length, begin + p.length);
      published.count += plan.type == ThresholdType::operations ? 1 : p.length;
    }
    for (uint64_t at = 0; at < published.length; ++at) published.holes = published.holes || !covered[at];
    all.push_back(std::move(published));
  }
  return all;
}

struct Fragment {
  const PlannedPut* planned = nullptr;
  uint64_t path = 0;
  uint64_t begin = 0, end = 0;  // absolute
};

struct Open {  // a fragment that is being placed
  Fragment fragment;
  ports::Ticket ticket;
  uint64_t at = 0;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed), table_({}, counters_) {
    const uint64_t mailboxes = 1 + pick(random_, 3);
    loss_percent_ = pick(random_, 40);
    paths_in_order_ = chance(random_, 50);
    for (uint64_t m = 0; m < mailboxes; ++m) {
      plans_.push_back(make_plan(random_, m));
      sides_.emplace_back();
    }
    for (uint64_t m = 0; m < mailboxes; ++m) {
      const Plan& plan = plans_[m];
      expected_.push_back(model(plan));
      const MailboxOptions options{.key = 7,
                                   .type = plan.type,
                                   .threshold = plan.threshold,
                                   .placement = plan.placement,
                                   .unique = plan.unique,
                                   .when_empty = plan.hold ? WhenEmpty::hold : WhenEmpty::nack,
                                   .held_bytes_max = buffer_bytes * 2};
      REQUIRE(table_.open(m, options) == Status::success);
    }
  }

  void run() {
    for (uint64_t step = 0; !finished(); ++step) {
      REQUIRE(step < 200000);  // else something hangs
      switch (pick(random_, 4)) {
        case 0:
          send();
          break;
        case 1:
          deliver();
          break;
        case 2:
          progress();
          break;
        default:
          receive();
          break;
      }
    }
    // What was late is still under way: it must be acknowledged, or refused, and change nothing.
    while (!network_.empty() || !open_.empty()) {
      deliver();
      progress();
    }
    receive_completions();
    for (size_t m = 0; m < sides_.size(); ++m) {
      CHECK(table_.epoch(m) == expected_[m].size());
      for (const auto& memory : sides_[m].posted) CHECK(memory == std::vector<std::byte>(buffer_bytes, untouched));
    }
  }

 private:
  struct Side {
    std::deque<std::vector<std::byte>> posted;
    std::deque<std::shared_ptr<CompletionRecord>> records;  // of those in `posted`
    uint64_t published = 0;
    uint64_t acked_epochs = 0;
  };

  bool finished() const {
    for (size_t m = 0; m < sides_.size(); ++m) {
      if (sides_[m].published < expected_[m].size() || sides_[m].acked_epochs < plans_[m].epochs.size()) return false;
    }
    return true;
  }

  // The sender: splits, sends in any order, sends again what was not acknowledged (and sometimes what was).
  void send() {
    const size_t m = pick(random_, plans_.size());
    const Plan& plan = plans_[m];
    Side& side = sides_[m];
    while (side.acked_epochs < plan.epochs.size() && all_acked(plan.epochs[side.acked_epochs])) ++side.acked_epochs;
    if (side.acked_epochs == plan.epochs.size()) return;
    // Who does not tell the epoch waits for the former one; who tells it may run ahead.
    const uint64_t ahead = plan.tell_epoch ? std::min<uint64_t>(plan.epochs.size() - side.acked_epochs, 3) : 1;
    const auto& puts = plan.epochs[side.acked_epochs + pick(random_, ahead)];
    const PlannedPut& planned =
        plan.placement == Placement::managed ? next_managed(plan.epochs[side.acked_epochs]) : puts[pick(random_, puts.size())];
    if (network_.size() > 64) return;
    uint64_t at = planned.put.base;
    const uint64_t end = planned.put.base + planned.length;
    const bool split = chance(random_, 70);
    while (at < end) {
      const uint64_t length = split ? 1 + pick(random_, end - at) : end - at;
      network_.push_back({&planned, pick(random_, paths), at, at + length});
      at += length;
    }
  }

  void deliver() {
    if (network_.empty()) return;
    size_t index = pick(random_, network_.size());
    if (paths_in_order_) {  // the oldest of that path: the paths race, none overtakes itself
      const uint64_t path = network_[index].path;
      while (network_[index].path != path ||
             std::any_of(network_.begin(), network_.begin() + long(index), [&](const Fragment& f) { return f.path == path; }))
        --index;
    }
    const Fragment fragment = network_[index];
    // Else it is duplicated: it stays.
    if (!chance(random_, 30)) network_.erase(network_.begin() + long(index));
    if (chance(random_, loss_percent_)) return;
    const Plan& plan = plans_[fragment.planned->put.mailbox];
    Put put = fragment.planned->put;
    if (!plan.tell_epoch) put.epoch = ports::PutOperation::any_epoch;
    const ports::Admission admission = table_.begin_write(fragment.path, put.at(fragment.begin), fragment.end - fragment.begin);
    if (admission.status == Status::success && !admission.already_placed) {
      open_.push_back({fragment, admission.ticket, 0});
      return;
    }
    // Something already placed is never refused otherwise; something new meets only what passes with time.
    const bool passes = admission.status == Status::success || admission.status == Status::mailbox_busy ||
                        admission.status == Status::mailbox_empty;
    INFO("refused: " << to_string(admission.status));
    CHECK(passes);
    if (admission.already_placed) acknowledge(fragment);
  }

  void progress() {
    if (open_.empty()) return;
    const size_t index = pick(random_, open_.size());
    Open& open = open_[index];
    const uint64_t length = open.fragment.end - open.fragment.begin;
    const MutableBytes span = table_.write_span(open.ticket, open.at);
    REQUIRE(span.size() == length - open.at);
    const uint64_t count = 1 + pick(random_, span.size());
    for (uint64_t i = 0; i < count; ++i) {
      span[i] = static_cast<std::byte>(static_cast<uint64_t>(open.fragment.planned->value) + open.fragment.begin + open.at + i);
    }
    open.at += count;
    const bool broken = chance(random_, loss_percent_ / 2);
    if (open.at < length && !broken) return;
    const bool complete = open.at == length && !broken;
    const Status status = table_.end_write(open.ticket, complete).status;
    CHECK(status == (complete ? Status::success : Status::disconnected));
    if (complete && !chance(random_, loss_percent_)) acknowledge(open.fragment);  // else the acknowledgement is lost
    open_[index] = open_.back();
    open_.pop_back();
  }

  void receive() {
    Side& side = sides_[pick(random_, sides_.size())];
    if (side.posted.size() < 2) {
      side.posted.emplace_back(buffer_bytes, untouched);
      side.records.push_back(std::make_shared<CompletionRecord>());
      const uint64_t mailbox = static_cast<uint64_t>(&side - sides_.data());
      CompletionRecord* record = plans_[mailbox].records ? side.records.back().get() : nullptr;
      REQUIRE(table_.post(mailbox, side.posted.back(), {.context = mailbox + 1000, .record = record}) == Status::success);
    }
    receive_completions();
  }

  void receive_completions() {
    while (const std::optional<Completion> done = table_.next_completion()) {
      REQUIRE_FALSE(plans_[done->mailbox].records);
      take(*done);
    }
    for (size_t m = 0; m < sides_.size(); ++m) {
      while (!sides_[m].records.empty() && sides_[m].records.front()->buffer != nullptr) {
        const CompletionRecord& r = *sides_[m].records.front();
        take({r.buffer, r.length_bytes, r.count, r.bytes, r.epoch, m, r.address, r.context, r.status, r.has_holes});
      }
    }
  }

  void take(const Completion& done) {
    Side& side = sides_[done.mailbox];
    REQUIRE(side.published < expected_[done.mailbox].size());
    REQUIRE(done.buffer == side.posted.front().data());
    CHECK(done.context == done.mailbox + 1000);
    const Published got{done.epoch, done.length_bytes, done.count, done.has_holes, side.posted.front()};
    const Published& wanted = expected_[done.mailbox][side.published++];
    CHECK(got.epoch == wanted.epoch);
    CHECK(got.length == wanted.length);
    CHECK(got.count == wanted.count);
    CHECK(got.holes == wanted.holes);
    CHECK(got.content == wanted.content);
    side.posted.pop_front();
    side.records.pop_front();
  }

  void acknowledge(const Fragment& fragment) {
    std::vector<bool>& acked = acked_[fragment.planned];
    acked.resize(buffer_bytes);
    std::fill(acked.begin() + static_cast<std::ptrdiff_t>(fragment.begin),
              acked.begin() + static_cast<std::ptrdiff_t>(fragment.end), true);
  }
  bool is_acked(const PlannedPut& p) {
    std::vector<bool>& acked = acked_[&p];
    acked.resize(buffer_bytes);
    for (uint64_t at = p.put.base; at < p.put.base + p.length; ++at) {
      if (!acked[at]) return false;
    }
    return true;
  }
  bool all_acked(const std::vector<PlannedPut>& puts) {
    return std::all_of(puts.begin(), puts.end(), [&](const PlannedPut& p) { return is_acked(p); });
  }
  // Managed: what is first sent is first placed, so a sender that cares for the order waits for each.
  const PlannedPut& next_managed(const std::vector<PlannedPut>& puts) {
    return *std::find_if(puts.begin(), puts.end(), [&](const PlannedPut& p) { return !is_acked(p); });
  }

  Random random_;
  uint64_t loss_percent_ = 0;
  bool paths_in_order_ = false;
  Counters counters_;
  MailboxTable table_;
  std::vector<Plan> plans_;
  std::vector<std::vector<Published>> expected_;
  std::vector<Side> sides_;
  std::vector<Fragment> network_;
  std::vector<Open> open_;
  std::map<const PlannedPut*, std::vector<bool>> acked_;
};

}  // namespace

TEST_CASE("mailboxes__drop_duplicate_reorder_split__publish_what_the_lossless_model_does") {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    World(seed).run();
  }
}
