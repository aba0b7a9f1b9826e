#include "app/main/second_dial.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ccixfer::program {

namespace {

DialPlan with_role(DialPlan plan, const SessionServices& services, const SecondPart& part) {
  plan.make_role = [services, part](session::Link& link, const RoleWish&) { return make_second_source(services, link, part); };
  return plan;
}

}  // namespace

SecondDial::SecondDial(const SessionServices& services, session::Hub& hub, SecondPlan plan)
    : services_(services), hub_(hub), plan_(with_role(std::move(plan.dial), services, plan.part)), path_(plan.part.path) {}

void SecondDial::turn(Instant now) {
  const bool is_wanted = !transfer_ && !is_given_up_ && path_->has_user();
  if (is_wanted && now >= again_at_) transfer_ = std::make_unique<DialledTransfer>(services_, hub_, plan_, now);
  if (!transfer_) return;
  transfer_->turn(now);
  if (now >= stop_at_) stop({ErrorKind::interrupted, "the transfer has ended"});
  judge(now);
}

void SecondDial::judge(Instant now) {
  if (is_given_up_ || !transfer_->ended()) return;
  const Error why = transfer_->result();
  services_.reporter.warn(fmt::format("second receiver {}: {}: all goes to the first one", plan_.uri, why.message));
  earlier_bytes_ += transfer_->tally().bytes_sent;
  transfer_.reset();
  is_given_up_ = !is_passing(why.kind);
  again_at_ = after(now, second_again);
}

Instant SecondDial::next_deadline() const {
  if (!transfer_) return is_given_up_ || !path_->has_user() ? never : again_at_;
  if (transfer_->ended()) return never;
  return std::min(transfer_->next_deadline(), stop_at_);
}

void SecondDial::stop(const Error& why) {
  is_given_up_ = true;
  if (transfer_) transfer_->stop(why);
}

// One that is open says goodbye; one that is being dialled is left.
void SecondDial::end(Instant now) {
  if (path_->is_over()) return;
  path_->end();
  is_given_up_ = true;
  stop_at_ = after(now, second_farewell);
  if (transfer_ && !transfer_->moving()) stop({ErrorKind::interrupted, "the transfer has ended"});
}

}  // namespace ccixfer::program
