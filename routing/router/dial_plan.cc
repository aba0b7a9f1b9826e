#include "routing/router/dial_plan.h"

#include <algorithm>
#include <utility>

namespace ccixfer::routing {

void DialPlan::add(uint32_t device, std::string uri, bool tried) {
  Entry& entry = entries_.emplace_back();
  entry.peer.device = device;
  entry.peer.uri = std::move(uri);
  entry.tried = tried;
}

std::vector<uint64_t> DialPlan::keep_only(uint32_t device, std::span<const std::string> uris) {
  std::vector<uint64_t> links;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.peer.device != device || std::find(uris.begin(), uris.end(), entry.peer.uri) != uris.end()) return false;
    if (entry.link != 0) links.push_back(entry.link);
    return true;
  });
  return links;
}

bool DialPlan::has(uint32_t device, const std::string& uri) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.peer.device == device && entry.peer.uri == uri; });
}

std::vector<size_t> DialPlan::due(Instant now) const {
  std::vector<size_t> peers;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].link == 0 && !entries_[i].self && now >= entries_[i].next_dial) peers.push_back(i);
  }
  return peers;
}

void DialPlan::dials(size_t peer, Instant now) {
  Entry& entry = entries_[peer];
  entry.next_dial = after(now, entry.backoff);
  entry.backoff = std::min<Duration>(entry.backoff * 2, redial_max);
}

void DialPlan::on_answer(uint64_t link) {
  for (Entry& entry : entries_) {
    if (entry.link == link) entry.tried = true;
  }
}

void DialPlan::on_self(uint64_t link) {
  for (Entry& entry : entries_) {
    if (entry.link == link) entry.self = entry.tried = true;
  }
}

void DialPlan::on_open(uint64_t link, uint64_t router, const std::string& node, Instant now) {
  for (Entry& entry : entries_) {
    if (entry.link != link) continue;
    entry.peer.router = router;
    entry.peer.node = node;
    entry.opened_at = now;
  }
}

void DialPlan::on_replaced(uint64_t link, uint64_t by) {
  for (Entry& entry : entries_) {
    if (entry.link != link) continue;
    entry.link = by;
    entry.tried = true;
  }
}

// A link that has lasted for a while begins anew with short waits.
std::vector<std::string> DialPlan::on_end(uint64_t link, Instant now) {
  std::vector<std::string> uris;
  for (Entry& entry : entries_) {
    if (entry.link != link) continue;
    entry.link = 0;
    entry.tried = true;
    if (entry.opened_at != never && now - entry.opened_at >= redial_max) entry.backoff = redial_first;
    entry.opened_at = never;
    entry.next_dial = std::max(entry.next_dial, after(now, redial_first));
    uris.push_back(entry.peer.uri);
  }
  return uris;
}

bool DialPlan::all_tried() const {
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.tried; });
}

Instant DialPlan::next_deadline() const {
  Instant when = never;
  for (const Entry& entry : entries_) {
    if (entry.link == 0 && !entry.self) when = std::min(when, entry.next_dial);
  }
  return when;
}

}  // namespace ccixfer::routing
