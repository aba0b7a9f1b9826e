// Where the protocol thread leaves what it says of itself, and the metrics' thread takes it: a hand-over without a lock. Only when
// somebody has asked is there anything to do, which costs the protocol thread one atomic read a turn else. What it leaves is a
// copy of what is to be told and how to put that into words, so that the words are made in the other thread. Threads: two, each
// with its own half. Errors: create: network (no descriptor is left).
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::metrics {

class Board {
 public:
  // JSON. It refers to nothing but what it owns.
  using Words = std::function<std::string()>;

  [[nodiscard]] static Result<std::unique_ptr<Board>> create();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // The protocol thread's half: readable when somebody has asked; until publish() answers.
  [[nodiscard]] int asked_handle() const { return asked_.get(); }
  [[nodiscard]] bool is_asked() const { return state_.load(std::memory_order_acquire) == State::asked; }
  void publish(Words words);  // only when is_asked()

  // The other half: readable when there is an answer that was not taken.
  [[nodiscard]] int news_handle() const { return news_.get(); }
  void ask();                                 // nothing, while there is no answer to the last time
  [[nodiscard]] std::optional<Words> take();  // nothing: no answer yet

 private:
  // Who may touch words_: the protocol thread while it is asked, the other one else.
  enum class State : uint8_t { idle, asked, answered };
  Board(host::Descriptor asked, host::Descriptor news) : asked_(std::move(asked)), news_(std::move(news)) {}
  const host::Descriptor asked_, news_;
  std::atomic<State> state_{State::idle};
  Words words_;
};

}  // namespace ccixfer::metrics
