#include "app/main/option_values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "app/session/limits.h"
#include "core/base/units.h"
#include "core/trust/ticket.h"

namespace ccixfer::program {
namespace {

constexpr int64_t timeout_s_max = 4'000'000'000;  // beyond it: no timeout

}  // namespace

tl::unexpected<Error> usage(std::string_view what, std::string_view where, std::string_view what_to_do) {
  if (trust::looks_like_ticket(where)) where = "a ticket";  // as secret as a password: it is not said again
  return fail(ErrorKind::usage, fmt::format("{}: {}: {}", what, where, what_to_do));
}

Result<uint64_t> whole_number(std::string_view option, std::string_view text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return usage("bad value", fmt::format("{} {}", option, text), fmt::format("give a whole number from {} to {}", low, high));
  }
  return value;
}

Result<void> take_rate(const OptionTexts& texts, RateTable& rate) {
  if (texts.bwlimit.empty()) return {};
  auto table = RateTable::parse(texts.bwlimit);
  if (!table) return tl::unexpected(table.error());
  rate = std::move(*table);
  return {};
}
Result<void> take_stop_at(const OptionTexts& texts, std::optional<StopAt>& stop_at) {
  if (texts.stop_at.empty()) return {};
  auto given = parse_stop_at(texts.stop_at);
  if (!given) return tl::unexpected(given.error());
  stop_at = std::move(*given);
  return {};
}
Result<uint64_t> memory_of(const OptionTexts& texts) {
  const auto bytes = parse_size_bytes(texts.memory);
  if (!bytes || *bytes == 0) return usage("bad value", fmt::format("--memory {}", texts.memory), "give a size such as 256MiB");
  return *bytes;
}
Result<Duration> timeout_of(const OptionTexts& texts) {
  double seconds = 0;
  const char* end_of_text = texts.timeout.data() + texts.timeout.size();
  const auto [end, problem] = std::from_chars(texts.timeout.data(), end_of_text, seconds);
  if (problem != std::errc() || end != end_of_text || !std::isfinite(seconds) || seconds <= 0) {
    return usage("bad value", fmt::format("--timeout {}", texts.timeout), "give seconds above zero");
  }
  if (seconds >= static_cast<double>(timeout_s_max)) return forever;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}
Result<void> take_transfer_values(const OptionTexts& texts, TransferOptions& transfer) {
  if (auto taken = take_rate(texts, transfer.rate); !taken) return taken;
  if (auto taken = take_stop_at(texts, transfer.stop_at); !taken) return taken;
  transfer.sync.deletes = transfer.sync.deletes || transfer.sync.delete_excluded;
  if (auto checked = check(transfer.sync); !checked) return checked;
  if (auto checked = tweaks_of(transfer.metadata, false); !checked) return tl::unexpected(checked.error());
  if (!transfer.metadata.chown.empty() && !transfer.archive)
    return usage("bad command line", "--chown", "only with --archive, which keeps owners");
  if (transfer.dry_run && !transfer.receipt.empty())
    return usage("bad command line", "--receipt with --dry-run", "nothing is delivered that it could list");
  if (!texts.lanes.empty()) {
    const auto lanes = whole_number("--lanes", texts.lanes, 1, session::lanes_max);
    if (!lanes) return tl::unexpected(lanes.error());
    transfer.lanes = static_cast<uint16_t>(*lanes);
  }
  if (!texts.retries.empty()) {
    const auto retries = whole_number("--retries", texts.retries, 0, UINT32_MAX);
    if (!retries) return tl::unexpected(retries.error());
    transfer.retries = static_cast<uint32_t>(*retries);
  }
  if (!texts.timeout.empty()) {
    const auto patience = timeout_of(texts);
    if (!patience) return tl::unexpected(patience.error());
    transfer.timeout = *patience;
  }
  if (!texts.memory.empty()) {
    const auto bytes = memory_of(texts);
    if (!bytes) return tl::unexpected(bytes.error());
    transfer.memory_bytes = *bytes;
  }
  return {};
}

namespace {

Result<void> take_ticket_values(const OptionTexts& texts, const CommonOptions& common, ListenOptions& listen) {
  if (!listen.ticket) {
    const char* given = !texts.expires.empty() ? "--expires" : !texts.uses.empty() ? "--uses" : nullptr;
    if (given != nullptr) return usage("bad command line", given, "only with --ticket");
    return {};
  }
  if (common.insecure) return usage("bad command line", "--ticket with --insecure", "a ticket needs an identity: give one of them");
  if (!texts.expires.empty()) {
    const auto age_s = parse_age_s(texts.expires);
    if (!age_s || *age_s == 0 || *age_s > ticket_expires_in_s_max) {
      return usage("bad value", fmt::format("--expires {}", texts.expires),
                   "give an age with its unit, such as 30m, 24h or 7d, at most 366d");
    }
    listen.ticket_expires_in_s = *age_s;
  }
  if (!texts.uses.empty()) {
    const auto uses = whole_number("--uses", texts.uses, 1, ticket_uses_option_max);
    if (!uses) return tl::unexpected(uses.error());
    listen.ticket_uses = static_cast<uint32_t>(*uses);
  }
  return {};
}

}  // namespace

Result<void> take_listen_values(const OptionTexts& texts, const CommonOptions& common, ListenOptions& listen) {
  if (!texts.sessions.empty()) {
    const auto sessions = whole_number("--sessions", texts.sessions, 1, sessions_option_max);
    if (!sessions) return tl::unexpected(sessions.error());
    listen.sessions = static_cast<uint32_t>(*sessions);
  }
  return take_ticket_values(texts, common, listen);
}

const char* option_of_dialler(const TransferOptions& asked, const OptionTexts& texts) {
  return asked.dry_run                ? "--dry-run"
         : asked.archive              ? "--archive"
         : asked.checksum             ? "--checksum"
         : asked.verify               ? "--verify"
         : !asked.lock_file.empty()   ? "--lock"
         : asked.stop_at              ? "--stop-at"
         : !asked.failed_list.empty() ? "--failed-list"
         : !texts.timeout.empty()     ? "--timeout"
         : !texts.retries.empty()     ? "--retries"
         : asked.from0                ? "--from0"
         : given_of(asked.metadata)   ? given_of(asked.metadata)
         : !asked.rules.empty()       ? name_of(asked.rules.front())
                                      : given_of(asked.sync);
}

Result<void> no_listening(const ListenOptions& listen, std::string_view with) {
  const char* given = listen.once                 ? "--once"
                      : listen.sessions           ? "--sessions"
                      : !listen.uri_file.empty()  ? "--uri-file"
                      : listen.listen             ? "--listen"
                      : listen.ticket             ? "--ticket"
                      : !listen.audit_log.empty() ? "--audit-log"
                                                  : nullptr;
  if (given != nullptr) return usage("bad command line", given, fmt::format("only with {}", with));
  return {};
}

}  // namespace ccixfer::program
