// What arrives in the mailboxes: a look at the trailer on the protocol thread, the rest in jobs that hold the buffer.
#include <fmt/format.h>

#include <algorithm>

#include "app/recv/machine.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {

using session::SegmentHeader;
using session::SegmentKind;
using session::TransferRecord;

void Destination::Impl::reject(std::string_view why) {
  counters.add(Counter::session_rejected);
  log(LogLevel::warning, "destination: session {:x}: rejected: {}", link.session(), why);
}

void Destination::Impl::resend_segment(uint64_t lane_session, uint64_t n) {
  counters.add(Counter::segments_bad);
  ++totals.segments_resent;
  session::Resend message;
  message.index = session::Resend::by_segment;
  message.lane_session = lane_session;
  message.n = n;
  resends.push_back(message);
}

void Destination::Impl::resend(const FileState& file, uint64_t piece) {
  ++totals.segments_resent;
  session::Resend message;
  message.index = file.task->index;
  message.piece = piece;
  resends.push_back(message);
}

void Destination::Impl::flush_resends() {
  while (!resends.empty() && messages_unsent <= messages_unsent_max) {
    post(resends.front());
    resends.drop_front();
  }
}

void Destination::Impl::receive(Arrival arrival) {
  if (error || !started) {
    release(arrival.buffer);
    return;
  }
  const Bytes segment = Bytes(arrival.buffer.bytes()).first(static_cast<size_t>(arrival.length_bytes));
  const Result<SegmentHeader> header = session::peek(segment);
  if (!header) {
    resend_segment(arrival.lane_session, arrival.n);
    release(arrival.buffer);
    return;
  }
  if (header->session != link.session() || header->lane_session != arrival.lane_session || header->n != arrival.n) {
    // Bytes that belong elsewhere are as good as damaged: the put that has its place here is still to come.
    reject("a segment of another session, lane or number");
    resend_segment(arrival.lane_session, arrival.n);
    release(arrival.buffer);
    return;
  }
  progress = true;
  peers_disk.answered();
  totals.bytes_sent += header->data_bytes;
  switch (header->kind) {
    case SegmentKind::void_:
      release(arrival.buffer);
      return;
    case SegmentKind::entries:
      receive_entries(arrival, *header);
      return;
    case SegmentKind::pack:
      receive_pack(arrival, *header);
      return;
    case SegmentKind::piece:
      receive_piece(arrival, *header);
      return;
  }
}

// Entries wait for their turn in memory of their own: a buffer held here could be the one that the missing segment needs.
void Destination::Impl::receive_entries(Arrival& arrival, const SegmentHeader& header) {
  const bool is_old = header.sequence < next_sequence || entries_held.contains(header.sequence) ||
                      (entries_running && header.sequence == next_sequence);
  const bool is_bounded = arrival.length_bytes <= entries_segment_bytes_max &&
                          header.sequence - next_sequence <= session::entries_outstanding_max &&
                          entries_held_bytes + arrival.length_bytes <= entries_held_bytes_max;
  if (!is_old && !is_bounded) {
    counters.add(Counter::session_rejected);
    end_with({ErrorKind::protocol, "entries beyond what may be outstanding"}, true);
  } else if (!is_old) {
    const Bytes segment = Bytes(arrival.buffer.bytes()).first(static_cast<size_t>(arrival.length_bytes));
    entries_held_bytes += segment.size();
    entries_held.emplace(header.sequence, std::vector<std::byte>(segment.begin(), segment.end()));
    entries_puts[header.sequence] = {arrival.lane_session, arrival.n};
  }
  release(arrival.buffer);
}

namespace {

struct EntriesWork {
  std::vector<std::byte> segment;
  uint64_t first_index = 0;
  Result<std::vector<Decision>> result{std::vector<Decision>{}};
  bool damaged = false;
};

void run_entries(EntriesContext& context, EntriesWork& state) {
  const Result<SegmentHeader> header = session::open(state.segment);
  if (!header) {
    state.damaged = true;
    return;
  }
  if (header->index != state.first_index) {
    state.result = fail(ErrorKind::protocol, "entries out of order");
    return;
  }
  const auto entries = session::decode_entries(Bytes(state.segment).first(header->data_bytes), header->count);
  if (!entries) {
    state.result = tl::unexpected<Error>(entries.error());
    // A name that leaves the root: one who pushes is told that he may not; one whom we asked lies.
    if (context.asked) state.result = fail(ErrorKind::protocol, entries.error().message);
    return;
  }
  if (context.asked) {
    if (const auto may = context.asked->judge(*entries); !may) {
      state.result = tl::unexpected<Error>(may.error());
      return;
    }
  }
  DecidedEntries decided = decide_entries(context, *entries, state.first_index);
  if (decided.fatal) {
    state.result = tl::unexpected<Error>(std::move(*decided.fatal));
  } else {
    state.result = std::move(decided.decisions);
  }
}

}  // namespace

void Destination::Impl::pump_entries() {
  if (entries_running || messages_unsent > messages_unsent_max) return;
  const auto due = entries_held.find(next_sequence);
  if (due == entries_held.end()) return;
  auto state = std::make_shared<EntriesWork>();
  state->segment = std::move(due->second);
  state->first_index = next_index;
  entries_held_bytes -= state->segment.size();
  entries_held.erase(due);
  entries_running = true;
  submit([state, context = entries_context.get()] { run_entries(*context, *state); },
         [this, state, sequence = next_sequence] { decided(sequence, std::move(state->result), state->damaged); });
}

void Destination::Impl::decided(uint64_t sequence, Result<std::vector<Decision>> decisions, bool is_damage) {
  entries_running = false;
  const Put put = entries_puts[sequence];
  entries_puts.erase(sequence);
  if (error) return;
  if (is_damage) {
    resend_segment(put.lane_session, put.n);
    return;
  }
  if (!decisions) {
    if (decisions.error().kind == ErrorKind::protocol || decisions.error().kind == ErrorKind::not_authorised) {
      counters.add(Counter::session_rejected);
    }
    end_with(decisions.error(), true);
    return;
  }
  ++next_sequence;
  const uint64_t first = next_index;
  next_index += decisions->size();
  totals.entries_answered = next_index;
  if (files.size() + decisions->size() > 2 * size_t{session::entries_outstanding_max}) {
    end_with({ErrorKind::protocol, "more entries than may be outstanding"}, true);
    return;
  }
  for (Decision& decision : *decisions) adopt(decision);
  post_answer(first, *decisions);
}

// A decision becomes state here, and the messages that precede its answer go out.
void Destination::Impl::adopt(Decision& decision) {
  const bool is_file = decision.type == session::EntryType::file;
  if (decision.leave) {
    leaves.push_back(std::move(*decision.leave));
    leaves_changed = true;
  }
  if (decision.verdict == session::Verdict::failed) {
    ++totals.files_failed;
    tell(decision.path, decision.version, decision.size_bytes, TransferRecord::Said::failed, describe_errno(decision.error_number));
    return;
  }
  if (decision.verdict == session::Verdict::make || decision.verdict == session::Verdict::change) {
    if (is_file) ++totals.files_unchanged;
    if (transfer_record->say(TransferRecord::name(decision.path, decision.version), TransferRecord::Said::ok))
      observer.on_file(decision.path, decision.size_bytes,
                       decision.verdict == session::Verdict::make ? "would-make" : "would-change", "");
    return;
  }
  if (decision.verdict == session::Verdict::unchanged) return adopt_unchanged(decision);
  if (!is_file || decision.verdict == session::Verdict::done) return;
  if (!decision.task) {  // a dry run
    totals.bytes_total += decision.size_bytes;
    if (transfer_record->say(TransferRecord::name(decision.path, decision.version), TransferRecord::Said::ok))
      observer.on_file(decision.path, decision.size_bytes, "would-send", "");
    return;
  }
  FileState& file = files[decision.task->index];
  file.task = decision.task;
  if (decision.verdict != session::Verdict::pieces) return count_wanted(file, 0);
  file.pieces = std::make_unique<Pieces>();
  file.pieces->staged = std::make_shared<StagedFile>(root, *file.task, true);
  uint64_t present_bytes = 0;
  for (const Ledger::Piece& piece : decision.present) {
    CHECK(file.pieces->table.expect(piece.number, piece.hash));
    file.pieces->table.set_state(piece.number, PieceState::durable);
    present_bytes += piece_length(file.task->size_bytes, piece.number);
  }
  count_wanted(file, present_bytes);
}

// It is there. What this transfer brought in an earlier session it has delivered.
void Destination::Impl::adopt_unchanged(const Decision& decision) {
  if (decision.attributes_refused) ++totals.attributes_refused;
  const uint64_t file = TransferRecord::name(decision.path, decision.version);
  const std::optional<uint64_t> moved_bytes = transfer_record->delivered(file, decision.size_bytes);
  if (moved_bytes) {
    ++totals.files;
    totals.bytes += *moved_bytes;
    totals.bytes_total += *moved_bytes;
  } else {
    ++totals.files_unchanged;
  }
  tell(decision.path, decision.version, decision.size_bytes,
       moved_bytes ? TransferRecord::Said::ok : TransferRecord::Said::unchanged, "");
}

// A file of unknown length counts when it is committed.
void Destination::Impl::count_wanted(FileState& file, uint64_t present_bytes) {
  const FileTask& task = *file.task;
  if (task.size_bytes == size_unknown) return;
  const uint64_t missing_bytes = task.size_bytes - present_bytes;
  file.counted_bytes = transfer_record->want(TransferRecord::name(task.path, task.version), task.size_bytes, missing_bytes);
  file.before_bytes = file.counted_bytes - missing_bytes;
  totals.bytes_total += file.counted_bytes;
  totals.bytes += file.before_bytes;
}

void Destination::Impl::count_durable(FileState& file, uint64_t bytes) {
  file.durable_bytes += bytes;
  session_bytes += bytes;
  totals.bytes += bytes;
}

void Destination::Impl::tell(const std::string& path, uint64_t version, uint64_t bytes, TransferRecord::Said said,
                             std::string_view reason) {
  if (!transfer_record->say(TransferRecord::name(path, version), said)) return;
  const char* status = said == TransferRecord::Said::ok ? "ok" : said == TransferRecord::Said::unchanged ? "unchanged" : "failed";
  observer.on_file(path, bytes, status, reason);
}

void Destination::Impl::post_answer(uint64_t first, const std::vector<Decision>& decisions) {
  session::Answer answer;
  answer.first_index = first;
  session::FileResults failures;
  uint64_t index = first;
  for (const Decision& decision : decisions) {
    if (answer.runs.empty() || answer.runs.back().verdict != decision.verdict) answer.runs.push_back({0, decision.verdict});
    ++answer.runs.back().count;
    if (decision.verdict == session::Verdict::failed) {
      failures.results.push_back({index, ErrorKind::file_io, decision.error_number});
    }
    if (decision.verdict == session::Verdict::pieces && !decision.wants.empty()) {
      for (const session::Message& message : session::cut(session::Want{index, decision.wants})) post(message);
    }
    ++index;
  }
  if (!failures.results.empty()) {
    for (const session::Message& message : session::cut(failures)) post(message);
  }
  if (!answer.runs.empty()) {
    for (const session::Message& message : session::cut(answer)) post(message);
  }
}

// The list of files is read before its hash was checked: it only finds our own records, and the job checks before it writes.
void Destination::Impl::receive_pack(Arrival& arrival, const SegmentHeader& header) {
  std::vector<PackItem> items;
  items.reserve(header.count);
  Bytes rest = Bytes(arrival.buffer.bytes()).first(header.data_bytes);
  session::PackRecord record;
  for (uint32_t i = 0; i < header.count; ++i) {
    if (!session::next_pack_record(rest, record)) {
      for (const PackItem& item : items) {
        FileState& taken = *find(item.task->index);
        taken.by_pack = false;
        --taken.jobs;
      }
      resend_segment(arrival.lane_session, arrival.n);
      release(arrival.buffer);
      return;
    }
    FileState* file = find(record.index);
    if (file == nullptr || file->by_pack || file->pieces || file->doom) continue;  // ended, or here already
    file->by_pack = true;
    ++file->jobs;
    PackItem item;
    item.task = file->task;
    item.content = record.content;
    items.push_back(std::move(item));
  }
  // With nothing to write its hash is looked at all the same: it may be that a damaged number named no file that waits.
  struct PackWork {
    Arrival arrival;
    std::vector<PackItem> items;
    bool damaged = false;
  };
  auto state = std::make_shared<PackWork>();
  state->arrival = std::move(arrival);
  state->items = std::move(items);
  submit(
      [state, shared_root = &root, rules = policy, holder = owner] {
        const Bytes segment = Bytes(state->arrival.buffer.bytes()).first(static_cast<size_t>(state->arrival.length_bytes));
        state->damaged = !session::open(segment);
        if (!state->damaged) stage_pack(*shared_root, rules, *holder, state->items);
      },
      [this, state] {
        release(state->arrival.buffer);
        pack_staged(state->items, state->damaged, state->arrival.lane_session, state->arrival.n);
      });
}

void Destination::Impl::pack_staged(std::vector<PackItem>& items, bool damaged, uint64_t lane_session, uint64_t n) {
  if (damaged) resend_segment(lane_session, n);
  for (PackItem& item : items) {
    FileState& file = *find(item.task->index);
    --file.jobs;
    if (error) {
      if (!item.staged.empty()) cleanup.push_back(std::move(item.staged));
      continue;
    }
    if (damaged) {
      file.by_pack = false;
    } else if (is_fatal(item.error_number)) {
      end_with(fatal_error(item.error_number, item.task->path), true);
    } else if (item.digest_differs) {
      doom(file, {ErrorKind::integrity, 0, true, "its content is not what its digest says"});
    } else if (item.error_number != 0) {
      file.by_pack = false;
      io_failed(file, item.error_number, {});
    } else if (item.staged.empty()) {
      file.by_pack = false;  // not tried: the session ended in the middle of the pack
    } else {
      file.committing = true;
      CommitItem commit;
      commit.task = file.task;
      commit.staged = std::move(item.staged);
      commit.size_bytes = item.content.size();
      commit.mark = item.mark;
      commit.attributes_refused = item.attributes_refused;
      commit_queue.push_back(std::move(commit));
    }
  }
}

void Destination::Impl::receive_piece(Arrival& arrival, const SegmentHeader& header) {
  FileState* file = find(header.index);
  const uint64_t piece = header.sequence;
  const bool is_known = file != nullptr && file->task->size_bytes != size_unknown;
  if (file == nullptr) {
    if (header.index >= next_index) reject("a piece of a file that has no verdict");
  } else if (header.data_bytes == 0 || piece >= piece_count(file_bytes_max)) {
    reject("an impossible piece");
  } else if (is_known &&
             (piece >= piece_count(file->task->size_bytes) || header.data_bytes != piece_length(file->task->size_bytes, piece))) {
    reject("a piece that is not of its file");
  } else if (!is_known && file->pieces && piece > file->pieces->table.end() + pieces_ahead_max) {
    reject("a piece too far ahead");
  } else if (header.file_version == file->task->version && !file->doom && !file->committing && !file->by_pack) {
    if (!file->pieces) {
      file->pieces = std::make_unique<Pieces>();
      file->pieces->staged = std::make_shared<StagedFile>(root, *file->task, false);
    }
    PieceTable& table = file->pieces->table;
    if (table.state(piece) != PieceState::absent) {
      // here already
    } else if (!table.expect(piece, header.hash)) {
      doom(*file, {ErrorKind::vanished, 0, true, "it changed while it was read"});
    } else {
      table.set_state(piece, PieceState::writing);
      ++file->jobs;
      struct PieceWork {
        Arrival arrival;
        uint32_t data_bytes = 0;
        bool damaged = false;
        int error_number = 0;
      };
      auto state = std::make_shared<PieceWork>();
      state->arrival = std::move(arrival);
      state->data_bytes = header.data_bytes;
      submit(
          [state, piece, staged = file->pieces->staged] {
            const Bytes segment = Bytes(state->arrival.buffer.bytes()).first(static_cast<size_t>(state->arrival.length_bytes));
            HeldFileRef open;
            int failure = staged->open(open);
            if (failure >= 0) {
              // Into a place of the staged file that is absent, so that a damaged piece overwrites nothing that counts.
              state->damaged = !session::open_in_blocks(segment, [&](Bytes block, uint64_t at_bytes) {
                failure = staged->write(*open, block, piece * session::piece_bytes + at_bytes);
                return failure >= 0;
              });
            }
            state->error_number = failure < 0 ? -failure : 0;
          },
          [this, state, piece, index = header.index, losses = file->pieces->losses] {
            release(state->arrival.buffer);
            piece_written(index, piece, state->data_bytes, state->damaged, state->error_number, losses);
          });
      return;
    }
  }
  release(arrival.buffer);
}

void Destination::Impl::piece_written(uint64_t index, uint64_t piece, uint64_t data_bytes, bool damaged, int error_number,
                                      uint32_t losses) {
  FileState& file = *find(index);
  --file.jobs;
  Pieces& pieces = *file.pieces;
  if (damaged || error_number != 0) {
    pieces.table.set_state(piece, PieceState::absent);
    if (error) {
      // nobody is there to ask
    } else if (damaged) {
      counters.add(Counter::segments_bad);
      if (!file.doom) resend(file, piece);
    } else if (is_fatal(error_number)) {
      end_with(fatal_error(error_number, file.task->path), true);
    } else if (!file.doom) {
      io_failed(file, error_number, {piece});
    }
  } else if (losses != pieces.losses) {  // a sync failed while it was written, and its bytes may be among those that were dropped
    pieces.table.set_state(piece, PieceState::absent);
    if (!error && !file.doom) resend(file, piece);
  } else {
    pieces.table.set_state(piece, PieceState::written);
    pieces.unsynced.push_back(piece);
    dirty_bytes += data_bytes;
    list_dirty(file);
  }
  go_on_with(index);
}

}  // namespace ccixfer::recv
