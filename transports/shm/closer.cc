#include "transports/shm/closer.h"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace ccixfer::shm {

struct Closer::Shared {
  explicit Shared(size_t most) : threads_most(most) {}
  const size_t threads_most;
  std::mutex mutex;
  std::condition_variable changed;  // nothing waits any more
  std::deque<host::Descriptor> waiting;
  size_t threads = 0;              // some of them may not have begun
  std::vector<pthread_t> closing;  // those that have
  bool hurries = false;

  void run();
  void hurry();
};

void Closer::Shared::run() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGURG);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  std::unique_lock lock(mutex);
  closing.push_back(pthread_self());
  while (!waiting.empty()) {
    host::Descriptor descriptor = std::move(waiting.front());
    waiting.pop_front();
    if (waiting.empty()) changed.notify_all();
    lock.unlock();
    descriptor.reset();
    lock.lock();
  }
  std::erase(closing, pthread_self());
  --threads;
}

// A signal that comes a moment before a close is lost on it. So there are more, until nothing waits.
void Closer::Shared::hurry() {
  std::unique_lock lock(mutex);
  while (!waiting.empty()) {
    for (const pthread_t thread : closing) pthread_kill(thread, SIGURG);
    changed.wait_for(lock, hurry_again, [this] { return waiting.empty(); });
  }
  hurries = false;
}

Closer::Closer(size_t threads) : shared_(std::make_shared<Shared>(threads)) {
  struct sigaction now {};
  CHECK(sigaction(SIGURG, nullptr, &now) == 0);
  if ((now.sa_flags & SA_SIGINFO) != 0 || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)) return;  // that does as well
  struct sigaction empty {};
  empty.sa_handler = [](int) {};
  CHECK(sigaction(SIGURG, &empty, nullptr) == 0);
}
Closer::~Closer() = default;

void Closer::close(host::Descriptor descriptor) {
  const std::lock_guard lock(shared_->mutex);
  shared_->waiting.push_back(std::move(descriptor));
  try {
    if (shared_->threads < shared_->threads_most) {
      std::thread([shared = shared_] { shared->run(); }).detach();
      ++shared_->threads;
    } else if (shared_->threads > 0 && !shared_->hurries) {
      std::thread([shared = shared_] { shared->hurry(); }).detach();
      shared_->hurries = true;
    }
  } catch (const std::system_error&) {
    return;  // no thread is to be had now: it waits for the next one
  }
}

bool Closer::is_full() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->waiting.size() >= waiting_max;
}

}  // namespace ccixfer::shm
