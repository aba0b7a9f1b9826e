// A Destination over the fake net, and a source that does what the test says, message by message and segment by segment.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/recv/destination.h"
#include "app/recv/root.h"
#include "app/session/segment.h"
#include "tests/unit/recv/faulty_files.h"
#include "tests/unit/session/link_fixture.h"

namespace ccixfer::recv::test {

// Runs jobs in reap(), in the order of submission or the other way round.
class InlinePool final : public ports::WorkPool {
 public:
  explicit InlinePool(ports::FileSystem& files) : files_(files) {}
  bool held = false;  // nothing runs
  bool newest_first = false;
  void submit(std::unique_ptr<ports::Job> job) override { jobs_.push_back(std::move(job)); }
  size_t reap() override {
    size_t count = 0;
    for (size_t left = jobs_.size(); left > 0 && !held; --left, ++count) {
      const std::unique_ptr<ports::Job> job = std::move(newest_first ? jobs_.back() : jobs_.front());
      newest_first ? jobs_.pop_back() : jobs_.pop_front();
      job->run(files_);
      job->done();
    }
    return count;
  }
  [[nodiscard]] size_t in_flight() const override { return jobs_.size(); }
  [[nodiscard]] int os_handle() const override { return -1; }

 private:
  ports::FileSystem& files_;
  std::deque<std::unique_ptr<ports::Job>> jobs_;
};

class Notes final : public DestinationObserver {
 public:
  std::map<std::string, std::string> files;  // path -> status
  std::vector<std::string> told;             // "path: status, bytes, reason", in order
  std::vector<std::string> warnings, failures;
  std::vector<std::string> items;  // "letters name", in order
  void on_item(const session::ItemLine& item) override { items.push_back(item.letters + " " + item.name + item.target); }
  void on_file(std::string_view path, uint64_t bytes, std::string_view status, std::string_view reason) override {
    files[std::string(path)] = status;
    told.push_back(std::string(path) + ": " + std::string(status) + ", " + std::to_string(bytes) + ", " + std::string(reason));
  }
  std::vector<std::string> failed_again;
  uint64_t unnamed = 0;
  void on_unnamed(uint64_t things) override { unnamed += things; }
  void on_failed_again(std::string_view path) override { failed_again.emplace_back(path); }
  void on_warning(std::string_view line) override { warnings.emplace_back(line); }
  void on_failure(std::string_view line) override { failures.emplace_back(line); }
};

enum class Damage : uint8_t { none, data, trailer, index };  // index: of a pack's first record

// What the destination said, and hands to put segments.
class ScriptedSource final : public session::LinkHandler {
 public:
  struct Lane {
    session::LaneOpen open;
    uint64_t credit = 0;
    uint64_t next_n = 0;
  };
  explicit ScriptedSource(session::fake::Side& side) : side_(side) {}
  ~ScriptedSource() override {
    for (auto& [context, put] : puts_) side_.memory->deregister_region(put.handle);
  }

  session::Link* link = nullptr;
  std::map<session::LaneIndex, Lane> lanes;
  std::map<uint64_t, session::Verdict> verdicts;
  std::map<uint64_t, std::vector<session::Want::Range>> wants;
  std::map<uint64_t, session::FileResult> results;
  std::vector<session::Compare> compares;
  std::vector<session::Resend> resends;
  std::vector<session::Placed> placed;
  std::vector<session::PlaceState> states;
  session::Durable durable;
  session::Alive alive;
  std::unique_ptr<session::Summary> summary;
  std::unique_ptr<session::Abort> aborted;
  uint64_t puts_failed = 0;
  uint64_t result_count = 0;

  void on_lane_up(session::LaneIndex) override {}
  void on_lane_down(session::LaneIndex lane) override { lanes.erase(lane); }
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override {
    if (const auto* open = std::get_if<session::LaneOpen>(&message)) lanes[lane].open = *open;
    if (const auto* credit = std::get_if<session::Credit>(&message)) {
      REQUIRE(credit->limit > lanes[lane].credit);
      lanes[lane].credit = credit->limit;
    }
  }
  void on_message(const session::Message& message) override {
    if (const auto* answer = std::get_if<session::Answer>(&message)) {
      uint64_t index = answer->first_index;
      for (const auto& run : answer->runs) {
        for (uint32_t i = 0; i < run.count; ++i) {
          REQUIRE((index == 0 || verdicts.contains(index - 1)));  // in order
          verdicts[index++] = run.verdict;
        }
      }
    } else if (const auto* want = std::get_if<session::Want>(&message)) {
      REQUIRE_FALSE(verdicts.contains(want->index));
      auto& ranges = wants[want->index];
      ranges.insert(ranges.end(), want->ranges.begin(), want->ranges.end());
    } else if (const auto* compare = std::get_if<session::Compare>(&message)) {
      REQUIRE(verdicts.contains(compare->index));
      compares.push_back(*compare);
    } else if (const auto* more = std::get_if<session::FileResults>(&message)) {
      for (const auto& result : more->results) results[result.index] = result;
      result_count += more->results.size();
    } else if (const auto* resend = std::get_if<session::Resend>(&message)) {
      resends.push_back(*resend);
    } else if (const auto* news = std::get_if<session::Placed>(&message)) {
      placed.push_back(*news);
    } else if (const auto* state = std::get_if<session::PlaceState>(&message)) {
      states.push_back(*state);
    } else if (const auto* now_durable = std::get_if<session::Durable>(&message)) {
      durable = *now_durable;
    } else if (const auto* sign = std::get_if<session::Alive>(&message)) {
      alive = *sign;
    } else if (const auto* last = std::get_if<session::Summary>(&message)) {
      summary = std::make_unique<session::Summary>(*last);
    } else if (const auto* abort = std::get_if<session::Abort>(&message)) {
      aborted = std::make_unique<session::Abort>(*abort);
    }
  }
  void on_put(session::LaneIndex, uint64_t context, Status status) override {
    if (status != Status::success) ++puts_failed;
    const auto at = puts_.find(context);
    side_.memory->deregister_region(at->second.handle);
    puts_.erase(at);
  }
  void on_link_lost(const Error&) override { lanes.clear(); }

  // The lane with credit left; none: false.
  [[nodiscard]] bool has_credit() const {
    for (const auto& [index, lane] : lanes) {
      if (lane.next_n < lane.credit) return true;
    }
    return false;
  }
  // Puts on the lane that was used least; a session, lane session or number given in the header says so whatever is true. Returns
  // (lane session, n).
  std::pair<uint64_t, uint64_t> put(session::SegmentHeader header, Bytes data, Damage damage = Damage::none) {
    session::LaneIndex best = 0;
    bool found = false;
    for (const auto& [index, lane] : lanes) {
      if (lane.next_n >= lane.credit || (found && lanes[best].next_n <= lane.next_n)) continue;
      best = index;
      found = true;
    }
    REQUIRE(found);
    Lane& lane = lanes[best];
    Put put;
    put.bytes.resize(data.size() + session::segment_trailer_bytes);
    std::copy(data.begin(), data.end(), put.bytes.begin());
    if (header.session == 0) header.session = link->session();
    if (header.lane_session == 0) header.lane_session = lane.open.lane_session;
    const uint64_t n = lane.next_n++;
    if (header.n == 0) header.n = n;
    header.data_bytes = static_cast<uint32_t>(data.size());
    const uint32_t length = session::seal(put.bytes, header);
    if (damage == Damage::data) put.bytes[data.size() / 2] ^= std::byte{1};
    if (damage == Damage::index) put.bytes[6] ^= std::byte{1};
    if (damage == Damage::trailer) put.bytes[length - 40] ^= std::byte{1};
    return put_raw(best, std::move(put.bytes), n);
  }
  std::pair<uint64_t, uint64_t> put_raw(session::LaneIndex index, std::vector<std::byte> bytes, uint64_t n) {
    Lane& lane = lanes[index];
    Put put;
    put.bytes = std::move(bytes);
    put.handle = side_.memory->register_region(Bytes(put.bytes));
    const uint64_t context = ++last_context_;
    const Status status = link->put(index, put.handle, 0, put.bytes.size(), lane.open.mailbox_base + n % session::stripes,
                                    lane.open.key, n / session::stripes, context);
    REQUIRE(status == Status::success);
    puts_.emplace(context, std::move(put));
    return {lane.open.lane_session, n};
  }
  std::pair<uint64_t, uint64_t> put_entries(const std::vector<session::Entry>& entries, uint64_t first_index, uint64_t sequence,
                                            Damage damage = Damage::none) {
    std::vector<std::byte> data(session::entries_segment_bytes);
    session::EntryEncoder encoder(data);
    for (const session::Entry& entry : entries) REQUIRE(encoder.add(entry));
    session::SegmentHeader header;
    header.kind = session::SegmentKind::entries;
    header.index = first_index;
    header.sequence = sequence;
    header.count = encoder.count();
    return put(header, Bytes(data).first(encoder.size_bytes()), damage);
  }
  std::pair<uint64_t, uint64_t> put_pack(const std::map<uint64_t, std::string>& files, Damage damage = Damage::none) {
    std::vector<std::byte> data;
    for (const auto& [index, content] : files) {
      const size_t at = data.size();
      data.resize(at + session::pack_record_bytes + content.size());
      session::put_pack_record(MutableBytes(data).subspan(at),
                               {index, static_cast<uint32_t>(content.size()), xxh3_128(as_bytes(content)), as_bytes(content)});
      const Bytes bytes = as_bytes(content);
      std::copy(bytes.begin(), bytes.end(), data.begin() + static_cast<std::ptrdiff_t>(at + session::pack_record_bytes));
    }
    session::SegmentHeader header;
    header.kind = session::SegmentKind::pack;
    header.count = static_cast<uint32_t>(files.size());
    return put(header, data, damage);
  }
  std::pair<uint64_t, uint64_t> put_piece(uint64_t index, uint64_t version, uint64_t piece, Bytes data,
                                          Damage damage = Damage::none) {
    session::SegmentHeader header;
    header.kind = session::SegmentKind::piece;
    header.index = index;
    header.sequence = piece;
    header.file_version = version;
    return put(header, data, damage);
  }

 private:
  struct Put {
    std::vector<std::byte> bytes;
    ports::Handle handle;
  };
  session::fake::Side& side_;
  std::map<uint64_t, Put> puts_;
  uint64_t last_context_ = 0;
};

// One session, dialled by the source. What accepts it is a Destination, or a SecondReceiver.
template <typename Accepting>
class SessionWith : public session::AcceptHandler {
 public:
  static constexpr uint64_t number = 77;
  using Make =
      std::function<std::unique_ptr<Accepting>(session::Link& link, session::fake::Side& side, memory::Pool& pool, Notes& notes)>;
  SessionWith(ports::WorkPool& work, Make make, uint16_t lanes, uint32_t buffers)
      : near_(net, "", 1),
        far_(net, "fake://far", 2),
        source(near_),
        pool(session::segment_bytes_max, buffers),
        work_(work),
        make_(std::move(make)) {
    far_.hub->set_accept_handler(this);
    session::Hello hello;
    hello.transfer[0] = 9;
    source_link = std::make_unique<session::Link>(*near_.endpoint, hello, source);
    source.link = source_link.get();
    near_.hub->add_link(source_link.get());
    dialler = std::make_unique<session::Dialler>(*near_.endpoint, *source_link, "fake://far", 7);
    dialler->set_lanes(lanes);
    near_.hub->add_dialler(dialler.get());
    REQUIRE(run([&] { return source.aborted != nullptr || (source.lanes.size() == lanes && source.has_credit()); }));
  }
  ~SessionWith() override {
    // A destination that has not ended is aborted by its owner and turned until it is idle.
    if (destination && !destination->finished()) destination->abort({ErrorKind::interrupted, "the test is over"});
    run([&] { return !destination || destination->idle(); });
    far_.hub->set_accept_handler(nullptr);
    near_.hub->remove_dialler(dialler.get());
    near_.hub->remove_link(source_link.get());
    if (destination_link) far_.hub->remove_link(destination_link.get());
    destination.reset();
  }

  Result<session::Link*> on_new_session(const session::Hello& hello, Instant) override {
    if (destination_link) return fail(ErrorKind::usage, "one session only");
    destination_link = std::make_unique<session::Link>(*far_.endpoint, hello, relay_);
    destination_link->set_session(number);
    destination_link->set_grace(std::chrono::seconds(1));
    far_.hub->add_link(destination_link.get());
    destination = make_(*destination_link, far_, pool, notes);
    relay_.to = destination.get();
    destination->start(now);
    return destination_link.get();
  }
  session::Link* find_session(const session::Hello& hello) override {
    return destination_link && hello.session == number ? destination_link.get() : nullptr;
  }

  void turn() {
    near_.hub->turn(now);
    if (source_link->session() == 0 && destination_link && !source_link->live_lanes().empty()) source_link->set_session(number);
    far_.hub->turn(now);
    while (const auto completion = far_.endpoint->mailboxes().next_completion()) {
      REQUIRE(destination->owns_mailbox(completion->mailbox));
      destination->on_completion(*completion);
    }
    work_.reap();
    Instant next = std::min(near_.hub->next_deadline(), far_.hub->next_deadline());
    if (destination) {
      destination->turn(now);
      next = std::min(next, destination->next_deadline());
    }
    const bool is_waiting = next > now && work_.in_flight() == 0;
    now = is_waiting && next != never ? next : now + std::chrono::microseconds(10);
  }
  bool run(const std::function<bool()>& what, size_t turns = 20000) {
    for (size_t i = 0; i < turns; ++i) {
      if (what()) return true;
      turn();
    }
    return what();
  }
  void settle(size_t turns = 200) {
    for (size_t i = 0; i < turns; ++i) turn();
  }
  [[nodiscard]] Counters& counters() { return far_.counters; }
  session::fake::Side& source_side() { return near_; }
  session::fake::Side& destination_side() { return far_; }

  session::fake::Net net;
  const Instant began{std::chrono::hours(5)};  // clocks do not begin at 0
  Instant now = began;

 private:
  class Relay final : public session::LinkHandler {
   public:
    session::LinkHandler* to = nullptr;
    void on_lane_up(session::LaneIndex lane) override { to->on_lane_up(lane); }
    void on_lane_down(session::LaneIndex lane) override { to->on_lane_down(lane); }
    void on_lane_message(session::LaneIndex lane, const session::Message& message) override { to->on_lane_message(lane, message); }
    void on_message(const session::Message& message) override { to->on_message(message); }
    void on_put(session::LaneIndex lane, uint64_t context, Status status) override { to->on_put(lane, context, status); }
    void on_link_lost(const Error& error) override { to->on_link_lost(error); }
  };
  session::fake::Side near_;
  session::fake::Side far_;
  Relay relay_;

 public:
  ScriptedSource source;
  memory::Pool pool;
  Notes notes;
  std::unique_ptr<session::Link> source_link;
  std::unique_ptr<session::Dialler> dialler;
  std::unique_ptr<session::Link> destination_link;
  std::unique_ptr<Accepting> destination;

 private:
  ports::WorkPool& work_;
  const Make make_;
};

class Session final : public SessionWith<Destination> {
 public:
  Session(Root& root, ports::WorkPool& work, const DestinationOptions& options, uint16_t lanes = 1, uint32_t buffers = 8)
      : SessionWith(
            work,
            [&root, &work, options](session::Link& link, session::fake::Side& side, memory::Pool& buffers_of, Notes& told) {
              return std::make_unique<Destination>(options, root, link, *side.endpoint, work, buffers_of, side.entropy, told,
                                                   side.counters);
            },
            lanes, buffers) {}
};

inline constexpr uint32_t archive =
    session::option_recursive | session::option_links | session::option_permissions | session::option_times | session::option_owner;

inline session::Entry file_entry(const std::string& path, uint64_t size_bytes, uint64_t version = 5) {
  session::Entry entry;
  entry.path = path;
  entry.size_bytes = size_bytes;
  entry.mode = 0644;
  entry.mtime = {1'000'000'000, 123'456'789};
  entry.version = version;
  return entry;
}
inline session::Entry directory_entry(const std::string& path, session::EntryType type = session::EntryType::directory) {
  session::Entry entry = file_entry(path, 0);
  entry.type = type;
  entry.mode = 0755;
  return entry;
}

}  // namespace ccixfer::recv::test
