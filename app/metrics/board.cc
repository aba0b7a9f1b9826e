#include "app/metrics/board.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace ccixfer::metrics {
namespace {

void raise(const host::Descriptor& event) {
  const uint64_t one = 1;
  static_cast<void>(!::write(event.get(), &one, sizeof one));
}

void lower(const host::Descriptor& event) {
  uint64_t count = 0;
  static_cast<void>(!::read(event.get(), &count, sizeof count));
}

}  // namespace

Result<std::unique_ptr<Board>> Board::create() {
  host::Descriptor asked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!asked || !news) return fail(ErrorKind::network, "no descriptor is left for the status page: allow more of them (ulimit -n)");
  return std::unique_ptr<Board>(new Board(std::move(asked), std::move(news)));
}

void Board::publish(Words words) {
  lower(asked_);
  words_ = std::move(words);
  state_.store(State::answered, std::memory_order_release);
  raise(news_);
}

// The handle before the state: whoever sees that it is asked can lower the handle, which else would stay raised.
void Board::ask() {
  if (state_.load(std::memory_order_acquire) != State::idle) return;
  raise(asked_);
  state_.store(State::asked, std::memory_order_release);
}

std::optional<Board::Words> Board::take() {
  if (state_.load(std::memory_order_acquire) != State::answered) return std::nullopt;
  lower(news_);
  std::optional<Words> words(std::exchange(words_, {}));
  state_.store(State::idle, std::memory_order_release);
  return words;
}

}  // namespace ccixfer::metrics
