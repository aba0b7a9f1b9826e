#include "tests/unit/send/fake_receiver.h"

#include <stdlib.h>

#include <fstream>

#include "app/send/reader.h"
#include "tests/unit/session/whole_segment.h"

namespace ccixfer::send_test {
namespace {
LinkEnd* newest = nullptr;
constexpr uint64_t session_number = 77;
}  // namespace
}  // namespace ccixfer::send_test

// The Link of this test program.
namespace ccixfer::session {

struct Link::Impl {
  send_test::LinkEnd* end;
};
Link::Link(cci::Endpoint&, const Hello&, LinkHandler&) : impl_(new Impl{send_test::newest}) {}
Link::~Link() = default;
uint64_t Link::session() const { return send_test::session_number; }
void Link::post(const Message& message) { impl_->end->on_post(message); }
size_t Link::control_queue_room() const { return impl_->end->queue_room; }
Status Link::put(LaneIndex lane, const ports::Handle&, uint64_t local_offset_bytes, uint64_t length_bytes, uint64_t mailbox,
                 uint64_t key, uint64_t epoch, uint64_t context, bool /*source_is_file*/) {
  return impl_->end->on_put(lane, local_offset_bytes, length_bytes, mailbox, key, epoch, context);
}
void Link::post_on_lane(LaneIndex lane, const Message& message) { impl_->end->asks.emplace_back(lane, std::get<Ask>(message)); }
bool Link::messages_delivered() const { return impl_->end->delivered; }
bool Link::messages_sent() const { return impl_->end->sent; }
void Link::close_lane(LaneIndex lane) { impl_->end->closed.push_back(lane); }
const SessionKeys* Link::keys() const { return nullptr; }
std::vector<LaneIndex> Link::live_lanes() const { return {}; }  // they come by on_lane_up

}  // namespace ccixfer::session

namespace ccixfer::send_test {

using session::EntryType;
using session::SegmentKind;
using session::SourceOutcome;

size_t QueuePool::reap() {
  std::deque<std::unique_ptr<ports::Job>> jobs;
  jobs.swap(jobs_);
  if (newest_first) std::reverse(jobs.begin(), jobs.end());
  for (const auto& job : jobs) job->run(files_);
  for (auto& job : jobs) {
    job->done();
    job.reset();
  }
  return jobs.size();
}

int WatchedFiles::open(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions) {
  if (flags.directory && !flags.anchor && unlisted.contains(name)) return -EACCES;
  if (const int error = hook("open", name); error != 0) return error;
  const int fd = real_.open(directory, name, flags, permissions);
  if (fd == -EBADF) ++bad_descriptors;
  if (fd >= 0) open_most = std::max(open_most, ++open_now);
  return fd;
}
int WatchedFiles::close(int fd) {
  --open_now;
  kept_.erase(fd);
  return real_.close(fd);
}
int64_t WatchedFiles::pread(int fd, MutableBytes into, uint64_t offset_bytes) {
  if (const int error = hook("pread", ""); error != 0) return error;
  const int64_t bytes = real_.pread(fd, into, offset_bytes);
  after_pread(fd);
  return bytes;
}
int64_t WatchedFiles::pwrite(int fd, Bytes from, uint64_t offset_bytes) {
  if (const int error = hook("pwrite", ""); error != 0) return error;
  written_to = std::max(written_to, offset_bytes + std::min(from.size(), write_max));
  return real_.pwrite(fd, from.first(std::min(from.size(), write_max)), offset_bytes);
}
int WatchedFiles::unlink_at(int directory, std::string_view name, bool is_directory) {
  if (name.find("ccixfer-names-") == std::string_view::npos) return -EROFS;
  return real_.unlink_at(directory, name, is_directory);
}
int64_t WatchedFiles::read_stream(int fd, MutableBytes into) {
  CHECK(fd == 0);
  if (const int error = hook("read_stream", ""); error != 0) return error;
  const std::string_view bytes = std::string_view(stream).substr(stream_at, std::min(stream_chunk, into.size()));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(into.data()));
  stream_at += bytes.size();
  return static_cast<int64_t>(bytes.size());
}
int WatchedFiles::as_told(int result, ports::FileStat& out) const {
  if (result < 0) return result;
  if (owner_above_root) out.uid = 6, out.gid = 7;
  if (const auto device = devices.find(out.inode); device != devices.end()) out.device = device->second;
  return result;
}
int WatchedFiles::fstat(int fd, ports::FileStat& out) {
  if (const int error = hook("fstat", ""); error != 0) return error;
  if (const auto kept = kept_.find(fd); kept != kept_.end()) {
    out = kept->second;
    return 0;
  }
  const int result = as_told(real_.fstat(fd, out), out);
  if (result >= 0 && keeps_attributes) kept_[fd] = out;
  return result;
}
int WatchedFiles::fstat_fresh(int fd, ports::FileStat& out) {
  kept_.erase(fd);
  return fstat(fd, out);
}
void WatchedFiles::mount(const std::string& place) {
  const auto add = [this, number = devices.size() + 1'000'000](const std::string& path) {
    ports::FileStat stat;
    REQUIRE(real_.stat_at(no_directory, path, stat, false) == 0);
    devices[stat.inode] = number;
  };
  add(place);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place)) add(entry.path().string());
}
int WatchedFiles::show(int fd, MutableBytes at, uint64_t offset_bytes) {
  if (!after_show) return -ENOTSUP;
  const int result = real_.show(fd, at, offset_bytes);
  after_show(fd);
  return result;
}
int WatchedFiles::stat_at(int directory, std::string_view name, ports::FileStat& out, bool follow) {
  if (const int error = hook("stat_at", name); error != 0) return error;
  return as_told(real_.stat_at(directory, name, out, follow), out);
}
int WatchedFiles::list_attributes(int fd, std::vector<std::string>& names) {
  names.clear();
  ports::FileStat stat;
  if (const int result = real_.fstat(fd, stat); result < 0) return result;
  if (remarks.contains(stat.inode)) names.emplace_back("user.remark");
  return 0;
}
int WatchedFiles::get_attribute(int fd, std::string_view name, std::string& value) {
  ports::FileStat stat;
  if (const int result = real_.fstat(fd, stat); result < 0) return result;
  const auto remark = remarks.find(stat.inode);
  if (remark == remarks.end() || name != "user.remark") return -ENODATA;
  value = remark->second;
  return 0;
}
int WatchedFiles::read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) {
  if (from_start) ++directory_reads;
  if (const int error = hook("read_directory", ""); error != 0) return error;
  const auto told = [&](std::string_view name) {
    ++names_read;
    entry(name);
  };
  if (from_start) std::for_each(more_names.begin(), more_names.end(), told);
  return real_.read_directory_part(fd, from_start, told);
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "ccixfer-send-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  root_ = name;
}
TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}
void TempDir::directory(const std::string& name) const { std::filesystem::create_directories(path(name)); }
void TempDir::file(const std::string& name, std::string_view content) const {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}
void TempDir::file_of(const std::string& name, uint64_t size_bytes) const { file(name, pattern(size_bytes)); }

std::string pattern(uint64_t size_bytes) {
  std::string text(size_bytes, '\0');
  uint32_t state = 12345;
  for (char& c : text) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24u);
  }
  return text;
}

LinkEnd::LinkEnd() {
  newest = this;
  alignas(16) static std::byte nothing[16];  // the fake never looks at either
  link_ = std::make_unique<session::Link>(*reinterpret_cast<cci::Endpoint*>(nothing), session::Hello{},
                                          *reinterpret_cast<session::LinkHandler*>(nothing));
}
LinkEnd::~LinkEnd() = default;

FakeReceiver::FakeReceiver() {
  decide = [](const session::Entry& entry, uint64_t) { return entry.type == EntryType::file ? Verdict::send : Verdict::done; };
}

const ReceivedFile* FakeReceiver::by_path(const std::string& path, EntryType type) const {
  for (const auto& [index, file] : entries) {
    if (file.entry.path == path && file.entry.type == type) return &file;
  }
  return nullptr;
}

bool ReceivedFile::is_complete() const {
  if (!end) return false;
  const uint64_t size_bytes = entry.size_bytes == ~uint64_t{0} ? end->size_bytes : entry.size_bytes;
  if (verdict == Verdict::send) return pieces.size() == send::pieces_of(size_bytes);
  return std::all_of(wanted.begin(), wanted.end(), [this](const session::Want::Range& range) {
    const auto first = pieces.lower_bound(range.first);
    return static_cast<uint64_t>(std::distance(first, pieces.lower_bound(range.first + range.count))) == range.count;
  });
}

std::string FakeReceiver::content_of(const ReceivedFile& file) {
  if (file.packed) return *file.packed;
  std::string whole;
  for (const auto& [piece, bytes] : file.pieces) whole += bytes;
  return whole;
}

std::string FakeReceiver::content(const std::string& path) const {
  const ReceivedFile* file = by_path(path);
  REQUIRE(file != nullptr);
  return content_of(*file);
}

bool FakeReceiver::every_number_placed(LaneIndex lane) const {
  const Lane& at = lanes_.at(lane);
  return at.placed_numbers == at.numbers && (at.numbers.empty() || *at.numbers.rbegin() + 1 == at.numbers.size());
}

size_t FakeReceiver::count(SegmentKind kind) const {
  return static_cast<size_t>(std::count_if(puts.begin(), puts.end(), [kind](const Put& put) { return put.header.kind == kind; }));
}

void FakeReceiver::lane_up(LaneIndex lane) {
  static uint64_t number = 1000;
  lanes_[lane] = Lane{};
  lanes_[lane].up = true;
  lanes_[lane].where = {++number, number << 20u, number * 31, session::stripes};
  lanes_[lane].limit = credit_window;
  source->on_lane_up(lane);
  source->on_lane_message(lane, lanes_[lane].where);
  source->on_lane_message(lane, session::Credit{credit_window, by_turns});
}

void FakeReceiver::lane_down(LaneIndex lane, Status status) {
  lanes_[lane].up = false;
  std::deque<Put> others;
  std::vector<uint64_t> lost;
  for (Put& put : in_air_) {
    if (put.lane == lane) {
      lost.push_back(put.context);
    } else {
      others.push_back(std::move(put));
    }
  }
  in_air_ = std::move(others);
  for (const uint64_t context : lost) source->on_put(lane, context, status);
  source->on_lane_down(lane);
}

Status FakeReceiver::on_put(LaneIndex lane, uint64_t offset, uint64_t length, uint64_t mailbox, uint64_t key, uint64_t epoch,
                            uint64_t context) {
  if (const Status status = accept(lane); status != Status::success) return status;
  Lane& to = lanes_[lane];
  CHECK(to.up);
  Put put;
  put.lane = lane;
  put.context = context;
  put.mailbox = mailbox;
  put.key = key;
  put.epoch = epoch;
  const MutableBytes bytes = memory.subspan(offset, length);
  put.bytes.assign(bytes.begin(), bytes.end());
  const Result<session::SegmentHeader> header = session_test::open(put.bytes);
  REQUIRE(header.has_value());
  put.header = *header;
  // n is dense on its lane, within the credit, and says where the put goes.
  CHECK(put.header.session == session_number);
  CHECK(put.header.lane_session == to.where.lane_session);
  CHECK(key == to.where.key);
  CHECK(mailbox == to.where.mailbox_base + put.header.n % session::stripes);
  CHECK(epoch == put.header.n / session::stripes);
  CHECK(put.header.n < to.limit);
  CHECK(put.header.n <= to.numbers.size());
  to.numbers.insert(put.header.n);
  Put log = put;
  log.bytes.clear();
  puts.push_back(std::move(log));
  in_air_.push_back(std::move(put));
  return Status::success;
}

void FakeReceiver::on_post(const session::Message& message) {
  LinkEnd::on_post(message);
  if (const auto* end = std::get_if<session::FileEnd>(&message)) {
    ReceivedFile& file = entries.at(end->index);
    CHECK((!file.ended || file.end));  // once more behind a piece that was asked for again
    file.end = *end;
  }
  if (const auto* end = std::get_if<session::End>(&message)) end_ = end->entries;
  if (std::holds_alternative<session::Bye>(message)) bye = true;
  if (const auto* why = std::get_if<session::Abort>(&message)) abort = *why;
}

void FakeReceiver::ask_again(const Put& put) {
  session::Resend resend;
  resend.index = session::Resend::by_segment;
  resend.lane_session = put.header.lane_session;
  resend.n = put.header.n;
  say(resend);
}

void FakeReceiver::place_entries(Put& put) {
  auto decoded = session::decode_entries(Bytes(put.bytes).first(put.header.data_bytes), put.header.count);
  REQUIRE(decoded.has_value());
  waiting_[put.header.index] = std::move(*decoded);
  outstanding += put.header.count;
  outstanding_most = std::max(outstanding_most, outstanding);
}

void FakeReceiver::take_first(std::vector<session::Entry> listed) {
  outstanding += listed.size();
  waiting_[0] = std::move(listed);
}

void FakeReceiver::place(Put& put) {
  if (damaged(put)) return ask_again(put);
  Bytes data = Bytes(put.bytes).first(put.header.data_bytes);
  if (put.header.kind == SegmentKind::entries) return place_entries(put);
  if (put.header.kind == SegmentKind::piece) {
    ReceivedFile& file = entries.at(put.header.index);
    CHECK(file.entry.version == put.header.file_version);
    file.pieces[put.header.sequence] = std::string(as_text(data));
    return;
  }
  session::PackRecord record;
  for (uint32_t i = 0; i < put.header.count; ++i) {
    REQUIRE(session::next_pack_record(data, record));
    CHECK(record.hash == xxh3_128(record.content));
    ReceivedFile& file = entries.at(record.index);
    CHECK(record.size_bytes == file.entry.size_bytes);
    file.packed = std::string(as_text(record.content));
  }
  CHECK(data.empty());
}

void FakeReceiver::finish(ReceivedFile& file, uint64_t index, ErrorKind kind) {
  file.ended = true;
  file.bad = kind != ErrorKind::ok;
  --outstanding;
  if (kind == ErrorKind::ok && file.entry.type == EntryType::file)
    bytes_ += bytes_of_result ? *bytes_of_result : content_of(file).size();
  session::FileResults results;
  results.results.push_back({index, kind, 0});
  say(results);
}

void FakeReceiver::grant(LaneIndex lane, uint64_t limit) {
  lanes_[lane].limit = limit;
  source->on_lane_message(lane, session::Credit{limit, by_turns});
}

void FakeReceiver::turn() {
  for (size_t i = 0; i < puts_per_turn && !in_air_.empty(); ++i) {
    Put put = std::move(in_air_.front());
    in_air_.pop_front();
    const Status status = put_status(put);
    if (status == Status::success) place(put);
    source->on_put(put.lane, put.context, status);
    Lane& lane = lanes_[put.lane];
    if (status == Status::success && lane.up) {
      ++lane.placed;
      lane.placed_numbers.insert(put.header.n);
      lane.limit = lane.placed + credit_window;
      source->on_lane_message(put.lane, session::Credit{lane.limit, by_turns});
    }
  }
  while (answering && !waiting_.empty() && waiting_.begin()->first == next_index_) {
    std::vector<session::Entry> batch = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    session::Answer answer;
    answer.first_index = next_index_;
    for (session::Entry& entry : batch) {
      const Verdict verdict = decide(entry, next_index_);
      if (answer.runs.empty() || answer.runs.back().verdict != verdict) answer.runs.push_back({0, verdict});
      ++answer.runs.back().count;
      ReceivedFile& file = entries[next_index_];
      file.entry = std::move(entry);
      file.verdict = verdict;
      if (verdict == Verdict::pieces) say(session::Want{next_index_, file.wanted = want(next_index_)});
      if (verdict == Verdict::send || verdict == Verdict::pieces) {
        open_.insert(next_index_);
      } else {
        file.ended = true;
        --outstanding;
      }
      ++next_index_;
    }
    say(answer);
  }
  for (auto at = open_.begin(); giving_results && at != open_.end();) {
    ReceivedFile& file = entries.at(*at);
    if (file.end && file.end->outcome != SourceOutcome::ok) {
      finish(file, *at, file.end->outcome == SourceOutcome::unreadable ? ErrorKind::partial : ErrorKind::vanished);
    } else if (file.packed || file.is_complete()) {
      finish(file, *at, ErrorKind::ok);
    } else {
      ++at;
      continue;
    }
    at = open_.erase(at);
  }
  if (end_ && *end_ == next_index_ && open_.empty() && !summary_) {
    summary_ = true;
    say(session::Summary{0, 0, failures_in_summary, bytes_});
  }
  flush();
}

void FakeReceiver::flush() {
  while (!to_source_.empty()) {
    const session::Message message = std::move(to_source_.front());
    to_source_.pop_front();
    source->on_message(message);
  }
}

const FileSeen* SeenByUser::find(const std::string& path) const {
  const auto found = std::find_if(files.begin(), files.end(), [&path](const FileSeen& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

Bench::Bench(const send::SourceOptions& options, uint32_t buffers) : pool(session::segment_bytes_max, buffers) {
  receiver.memory = pool.memory();
  source = std::make_unique<send::Source>(options, receiver.link(), work, pool, ports::Handle{}, seen, counters);
  receiver.source = source.get();
}
Bench::~Bench() {
  source.reset();
  while (work.in_flight() > 0) work.reap();
  CHECK(files.open_now == 0);
}
void Bench::start() {
  source->start(now);
  receiver.lane_up(0);
}
void Bench::step() {
  work.reap();
  receiver.turn();
  source->turn(now);
  now += std::chrono::milliseconds(1);
}
void Bench::run_until(const std::function<bool()>& condition, size_t steps_max) {
  for (size_t i = 0; i < steps_max && !condition(); ++i) step();
  REQUIRE(condition());
}
void Bench::run(size_t steps_max) {
  start();
  run_until([this] { return source->finished(); }, steps_max);
}

send::SourceOptions options_of(std::vector<std::string> sources, uint32_t bits) {
  send::SourceOptions options;
  options.sources = std::move(sources);
  options.options = bits;
  return options;
}

}  // namespace ccixfer::send_test
