#include "app/send/buffer_share.h"

#include "app/session/limits.h"
#include "core/base/check.h"

namespace ccixfer::send {

Buffer::Buffer(memory::Loan loan, std::shared_ptr<uint32_t> held) : loan_(std::move(loan)), held_(std::move(held)) {
  if (loan_) ++*held_;
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  loan_ = std::move(other.loan_);
  held_ = std::move(other.held_);
  return *this;
}

void Buffer::reset() {
  if (!loan_) return;
  loan_.reset();
  --*held_;
}

BufferShare::BufferShare(memory::Pool& pool, std::shared_ptr<session::PoolTurns> turns) : pool_(pool), turns_(std::move(turns)) {
  CHECK(pool.buffer_bytes() >= session::segment_bytes_max);
  if (turns_) turns_->join();
}

BufferShare::~BufferShare() {
  if (turns_) turns_->leave();
}

bool BufferShare::may_lend(bool keep_one) {
  const uint32_t reserve = keep_one && pool_.count() > 1 ? 1 : 0;
  const bool may = pool_.free_count() > reserve && !has_its_share();
  if (!may) starved_ = true;
  return may;
}

Buffer BufferShare::lend() { return {pool_.lend(), held_}; }

Buffer BufferShare::lend_for_entries(bool again) {
  Buffer buffer = !again && has_its_share() ? Buffer() : lend();
  if (!buffer) starved_ = true;
  return buffer;
}

}  // namespace ccixfer::send
