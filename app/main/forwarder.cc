#include "app/main/forwarder.h"

#include "core/base/check.h"

namespace ccixfer::program {

void Forwarder::attach(session::LinkHandler& role) {
  CHECK(role_ == nullptr && !detached_);
  role_ = &role;
  for (const session::LaneIndex lane : lanes_) role.on_lane_up(lane);
  for (const Early& early : early_) {
    if (early.lane) {
      role.on_lane_message(*early.lane, early.message);
    } else {
      role.on_message(early.message);
    }
  }
  early_.clear();
  if (lost_) role.on_link_lost(*lost_);
}

void Forwarder::detach() {
  role_ = nullptr;
  detached_ = true;
}

void Forwarder::on_lane_up(session::LaneIndex lane) {
  lanes_.insert(lane);
  had_lane_ = true;
  if (role_ != nullptr) role_->on_lane_up(lane);
}

void Forwarder::on_lane_down(session::LaneIndex lane) {
  lanes_.erase(lane);
  std::erase_if(early_, [lane](const Early& early) { return early.lane == lane; });
  if (role_ != nullptr) role_->on_lane_down(lane);
}

void Forwarder::on_lane_message(session::LaneIndex lane, const session::Message& message) {
  if (role_ != nullptr) return role_->on_lane_message(lane, message);
  keep({lane, message});
}

void Forwarder::on_message(const session::Message& message) {
  if (const auto* part = std::get_if<session::OpenPart>(&message)) return take_part(*part);
  if (const auto* opened = std::get_if<session::Opened>(&message)) {
    if (opened_ || opened->session == 0) return reject("the peer opened the session twice, or without a number");
    opened_ = *opened;
    return;
  }
  if (const auto* seat = std::get_if<session::TeamSeat>(&message); seat != nullptr && role_ == nullptr) {
    is_helper_ = seat->is_helper;
    return;
  }
  if (const auto* queued = std::get_if<session::Queued>(&message)) {
    queued_ = *queued;
    ++queue_news_;
    return;
  }
  was_aborted_ = was_aborted_ || std::holds_alternative<session::Abort>(message);
  if (role_ != nullptr) return role_->on_message(message);
  if (const auto* abort = std::get_if<session::Abort>(&message)) {
    return fail_with(session::error_of(*abort, "the peer"));
  }
  keep({std::nullopt, message});
}

void Forwarder::on_put(session::LaneIndex lane, uint64_t context, Status status) {
  if (role_ != nullptr) role_->on_put(lane, context, status);
}

void Forwarder::on_link_lost(const Error& error) {
  if (!lost_) lost_ = error;
  if (role_ != nullptr) role_->on_link_lost(error);
}

void Forwarder::take_part(const session::OpenPart& part) {
  if (auto open = joiner_.add(part)) open_ = std::move(open);
  if (joiner_.failed()) reject("the peer's request to open a session is malformed");
}

void Forwarder::keep(Early early) {
  if (detached_) return;
  if (early_.size() >= early_messages_max) return reject("the peer sends before the session is open");
  early_.push_back(std::move(early));
}

void Forwarder::reject(std::string words) {
  violated_ = violated_ || !lost_;
  fail_with({ErrorKind::protocol, std::move(words)});
}

void Forwarder::fail_with(Error error) {
  if (lost_) return;
  lost_ = std::move(error);
  if (role_ != nullptr) role_->on_link_lost(*lost_);
}

}  // namespace ccixfer::program
