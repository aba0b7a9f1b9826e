// The part of the process's buffer pool that one session uses. Sessions share the pool
// (session::PoolTurns), so that each may hold only its share of it.
// Out: Buffers, which count for the session until they are reset or destroyed, in whatever job or
// segment they are by then.
// Errors: no buffer is a normal answer; starved() tells that somebody in this turn went without.
// Single-threaded.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "app/session/pool_turns.h"
#include "core/memory/pool.h"

namespace ccixfer::send {

// A loan of the pool. It may outlive the BufferShare, but not the pool.
class Buffer {
 public:
  Buffer() = default;
  Buffer(memory::Loan loan, std::shared_ptr<uint32_t> held);
  Buffer(Buffer&& other) noexcept = default;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(loan_); }
  [[nodiscard]] MutableBytes bytes() const { return loan_.bytes(); }
  [[nodiscard]] memory::Loan& loan() { return loan_; }
  [[nodiscard]] const memory::Loan& loan() const { return loan_; }
  void reset();

 private:
  memory::Loan loan_;
  std::shared_ptr<uint32_t> held_;  // the session's count
};

class BufferShare {
 public:
  BufferShare(memory::Pool& pool, std::shared_ptr<session::PoolTurns> turns);  // `turns`: none, if the session is the only one
  ~BufferShare();
  BufferShare(const BufferShare&) = delete;
  BufferShare& operator=(const BufferShare&) = delete;

  void begin_turn() { starved_ = false; }
  // Whether lend() gives a buffer for data now. `keep_one`: one buffer of the pool must stay free
  // after that.
  [[nodiscard]] bool may_lend(bool keep_one);
  [[nodiscard]] Buffer lend();
  // Entries bring the next files, so they may take the last buffer of the pool. `again`: the
  // destination waits for these, so they may go beyond the share too. Empty: there is none.
  [[nodiscard]] Buffer lend_for_entries(bool again);
  [[nodiscard]] uint32_t held() const { return *held_; }
  [[nodiscard]] bool starved() const { return starved_; }
  [[nodiscard]] uint32_t pool_buffers() const { return pool_.count(); }

 private:
  [[nodiscard]] bool has_its_share() const { return turns_ && held() >= turns_->share(); }

  memory::Pool& pool_;
  const std::shared_ptr<session::PoolTurns> turns_;
  const std::shared_ptr<uint32_t> held_ = std::make_shared<uint32_t>(0);
  bool starved_ = false;
};

}  // namespace ccixfer::send
