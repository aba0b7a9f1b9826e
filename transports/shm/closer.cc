#include "transports/shm/closer.h"

#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ccixfer::shm {

struct Closer::Shared {
  std::mutex mutex;
  std::deque<host::Descriptor> waiting;
  size_t threads = 0;

  void run();
};

void Closer::Shared::run() {
  std::unique_lock lock(mutex);
  while (!waiting.empty()) {
    host::Descriptor descriptor = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    descriptor.reset();
    lock.lock();
  }
  --threads;
}

Closer::Closer() : shared_(std::make_shared<Shared>()) {}
Closer::~Closer() = default;

void Closer::close(host::Descriptor descriptor) {
  const std::lock_guard lock(shared_->mutex);
  shared_->waiting.push_back(std::move(descriptor));
  if (shared_->threads >= threads_max) return;
  try {
    std::thread([shared = shared_] { shared->run(); }).detach();
    ++shared_->threads;
  } catch (const std::system_error&) {
    return;  // no thread is to be had now: it waits for the next one
  }
}

bool Closer::is_full() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->waiting.size() >= waiting_max;
}

}  // namespace ccixfer::shm
