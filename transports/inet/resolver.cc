#include "transports/inet/resolver.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace ccixfer::inet {
namespace {

Address address_of(const boost::asio::ip::tcp::endpoint& endpoint) {
  Address address;
  std::memcpy(&address.storage, endpoint.data(), endpoint.size());
  address.size = static_cast<socklen_t>(endpoint.size());
  return address;
}

}  // namespace

// getaddrinfo says that nobody has the name, too, when it could ask nobody.
Resolver::Answer unanswered(bool nobody_has_it, std::string words, int problem) {
  Resolver::Answer answer;
  answer.unknown = nobody_has_it && problem != EMFILE && problem != ENFILE && problem != ENOMEM;
  answer.reason = std::move(words);
  if (nobody_has_it && !answer.unknown)
    answer.reason = fmt::format("the name cannot be looked up now: {}", std::system_category().message(problem));
  return answer;
}

Resolver::Answer resolve_now(const std::string& host, uint16_t port) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::resolver resolver(context);
  boost::system::error_code error;
  errno = 0;
  const auto found = resolver.resolve(host, std::to_string(port), boost::asio::ip::resolver_base::numeric_service, error);
  const int problem = errno;
  const bool nobody_has_it = error == boost::asio::error::host_not_found || error == boost::asio::error::no_data;
  Resolver::Answer answer;
  if (error) answer = unanswered(nobody_has_it, error.message(), problem);
  for (const auto& entry : found) answer.addresses.push_back(address_of(entry.endpoint()));
  return answer;
}

Result<Address> listen_address(const std::string& name, uint16_t port) {
  // getaddrinfo would take the star for a name, and give the loopback address.
  const std::string host = name != "*" ? name : host::Descriptor(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) ? "::" : "0.0.0.0";
  Address address;
  if (numeric_address(host, port, address)) return address;
  const Resolver::Answer found = resolve_now(host, port);
  if (!found.addresses.empty()) return found.addresses.front();
  return fail(ErrorKind::usage, fmt::format("cannot listen on '{}': {}", host, found.reason));
}

struct Resolver::Shared {
  struct Question {
    uint64_t id;
    std::string host;
    uint16_t port;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Question> questions;
  std::vector<Answer> answers;
  size_t threads = 0;
  size_t idle = 0;  // of these, who wait for a question
  bool stopping = false;
  host::WakeHandle loop;

  explicit Shared(host::WakeHandle handle) : loop(std::move(handle)) {}
  void run();
};

void Resolver::Shared::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    ++idle;
    changed.wait(lock, [this] { return stopping || !questions.empty(); });
    --idle;
    if (stopping) return;
    const Question question = std::move(questions.front());
    questions.pop_front();
    lock.unlock();
    Answer answer = resolve_now(question.host, question.port);
    answer.id = question.id;
    lock.lock();
    if (stopping) return;
    answers.push_back(std::move(answer));
    loop.wake();
  }
}

Resolver::Resolver(host::WakeHandle loop) : shared_(std::make_shared<Shared>(std::move(loop))) {}

Resolver::~Resolver() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
}

bool Resolver::resolve(uint64_t id, std::string host, uint16_t port) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->questions.size() >= lookups_max || !shared_->loop) return false;
  if (shared_->questions.size() >= shared_->idle && shared_->threads < threads_max) {
    try {
      std::thread([shared = shared_] { shared->run(); }).detach();
      ++shared_->threads;
    } catch (const std::system_error&) {
      if (shared_->threads == 0) return false;  // no thread to be had now
    }
  }
  shared_->questions.push_back({id, std::move(host), port});
  shared_->changed.notify_one();
  return true;
}

void Resolver::forget(uint64_t id) {
  const std::lock_guard lock(shared_->mutex);
  std::erase_if(shared_->questions, [id](const Shared::Question& question) { return question.id == id; });
  std::erase_if(shared_->answers, [id](const Answer& answer) { return answer.id == id; });
}

std::vector<Resolver::Answer> Resolver::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->answers, {});
}

}  // namespace ccixfer::inet
