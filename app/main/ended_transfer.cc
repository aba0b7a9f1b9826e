#include "app/main/ended_transfer.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "app/main/on_complete.h"
#include "app/main/session_trust.h"
#include "app/main/turn_loop.h"
#include "core/base/local_kinds.h"

namespace ccixfer::program {
namespace {

constexpr size_t joined_bytes_max = 4096;

// The first of so many that a shell made of a pattern. One alone is whole, whatever its length.
std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0 && text.size() + words[i].size() > joined_bytes_max) return fmt::format("{} and {} more", text, words.size() - i);
    text += (text.empty() ? "" : " ") + words[i];
  }
  return text;
}

// A ticket stands for a permission, which is nobody's to read.
std::string shown(const std::string& place) { return place.find("://") == std::string::npos ? "ticket" : place; }

}  // namespace

const TransferOptions* transfer_of(const Command& command) {
  if (const auto* send = std::get_if<SendCommand>(&command)) return &send->transfer;
  if (const auto* receive = std::get_if<ReceiveCommand>(&command)) return &receive->transfer;
  return nullptr;
}

std::optional<DialledNames> dialled_transfer(const Command& command, const CommandEnd& end) {
  const TransferOptions* transfer = transfer_of(command);
  if (transfer == nullptr || transfer->dry_run || end.error.kind == already_running) return std::nullopt;
  if (end.tally.helped) return std::nullopt;  // the process that leads tells of it
  if (const auto* send = std::get_if<SendCommand>(&command)) {
    const bool is_of_team = send->team.stripe || !send->team.part.empty();
    if (send->serve || (is_of_team && end.transfer.empty())) return std::nullopt;
    return DialledNames{true, shown(send->destination), joined(send->sources)};
  }
  const auto& receive = std::get<ReceiveCommand>(command);
  if (receive.root) return std::nullopt;
  std::vector<std::string> peers;
  for (const std::string& uri : receive.uris) peers.push_back(shown(uri));
  return DialledNames{false, joined(peers), receive.directory};
}

std::string result_of(const DialledNames& names, const CommandEnd& end, int64_t began_s) {
  report::Transfer transfer;
  transfer.transfer = end.transfer;
  transfer.peer = names.peer;
  transfer.identity = end.identity;
  transfer.is_push = names.is_push;
  transfer.path = names.path;
  transfer.kind = end.error.kind;
  transfer.reason = end.error.message;
  transfer.counts = counts_of(end.tally);
  transfer.began_s = began_s;
  transfer.ended_s = wall_time_s();
  return report::transfer_result(transfer);
}

void tell_unbegun(const Command& command, const Error& error, OnComplete* started) {
  CommandEnd end;
  end.error = error;
  const auto dialled = dialled_transfer(command, end);
  const TransferOptions* transfer = transfer_of(command);
  if (!dialled || transfer->on_complete.empty()) return;
  let_writes_fail();
  std::unique_ptr<report::Reporter> reporter;
  std::unique_ptr<OnComplete> own;
  if (started == nullptr) {
    auto made = report::Reporter::create({}, Instant{});
    if (!made) return;
    reporter = std::move(*made);
    auto helper = OnComplete::start(transfer->on_complete, *reporter);
    if (!helper) return reporter->warn(helper.error().message);
    own = std::move(*helper);
    started = own.get();
  }
  started->run(result_of(*dialled, end, wall_time_s()));
  started->finish(TurnLoop::is_told_to_end);
}

}  // namespace ccixfer::program
