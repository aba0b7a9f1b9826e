#include "transports/tcp/resolver.h"

#include <arpa/inet.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace ccixfer::tcp {
namespace {

Address address_of(const boost::asio::ip::tcp::endpoint& endpoint) {
  Address address;
  std::memcpy(&address.storage, endpoint.data(), endpoint.size());
  address.size = static_cast<socklen_t>(endpoint.size());
  return address;
}

}  // namespace

bool numeric_address(const std::string& host, uint16_t port, Address& address) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    std::memcpy(&address.storage, &v4, sizeof v4);
    address.size = sizeof v4;
    return true;
  }
  if (host.find(':') == std::string::npos) return false;
  // Scopes (fe80::1%eth0) need the interface's index; Asio knows how.
  boost::system::error_code error;
  const boost::asio::ip::address parsed = boost::asio::ip::make_address(host, error);
  if (error) return false;
  address = address_of({parsed, port});
  return true;
}

std::string host_of(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

uint16_t port_of(const Address& address) {
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return ntohs(v4.sin_port);
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.storage, sizeof v6);
  return ntohs(v6.sin6_port);
}

Resolver::Answer resolve_now(const std::string& host, uint16_t port) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::resolver resolver(context);
  boost::system::error_code error;
  const auto found = resolver.resolve(host, std::to_string(port), boost::asio::ip::resolver_base::numeric_service, error);
  Resolver::Answer answer;
  if (error) answer.reason = error.message();
  answer.unknown = error == boost::asio::error::host_not_found || error == boost::asio::error::no_data;
  for (const auto& entry : found) answer.addresses.push_back(address_of(entry.endpoint()));
  return answer;
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
  bool started = false;
  bool stopping = false;
  host::WakeHandle loop;

  explicit Shared(host::WakeHandle handle) : loop(std::move(handle)) {}
  void run();
};

void Resolver::Shared::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stopping || !questions.empty(); });
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
  if (!shared_->started) {
    try {
      std::thread([shared = shared_] { shared->run(); }).detach();
    } catch (const std::system_error&) {
      return false;  // no thread to be had now
    }
    shared_->started = true;
  }
  shared_->questions.push_back({id, std::move(host), port});
  shared_->changed.notify_all();
  return true;
}

std::vector<Resolver::Answer> Resolver::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->answers, {});
}

}  // namespace ccixfer::tcp
