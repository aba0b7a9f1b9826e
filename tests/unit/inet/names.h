// Names of a test, in place of the name service's: the program that includes this in one file has its own getaddrinfo. Names that
// the test did not give go to the C library.
#pragma once
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ccixfer::inet::testing {

struct GivenNames {
  struct Listed {
    addrinfo info{};
    sockaddr_in address{};
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::vector<std::string>> known;
  std::set<std::string> hanging;
  std::map<addrinfo*, std::deque<Listed>> lists;  // that were given out
  size_t asked = 0;                               // for one of these
};
inline GivenNames given_names;

// While it lives.
class Names {
 public:
  Names() = default;
  ~Names() {
    const std::lock_guard lock(given_names.mutex);
    given_names.known.clear();
    given_names.hanging.clear();
    given_names.changed.notify_all();
  }
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  // No addresses: there is no such name.
  void give(const std::string& name, std::vector<std::string> addresses) {
    const std::lock_guard lock(given_names.mutex);
    given_names.known[name] = std::move(addresses);
  }
  // Nobody answers before it is let go; there is no such name then.
  void hang(const std::string& name) {
    const std::lock_guard lock(given_names.mutex);
    given_names.hanging.insert(name);
  }
  void let_go(const std::string& name) {
    const std::lock_guard lock(given_names.mutex);
    given_names.hanging.erase(name);
    given_names.changed.notify_all();
  }
  // Until so many questions were asked, since the first test.
  void wait_for_questions(size_t count) {
    std::unique_lock lock(given_names.mutex);
    given_names.changed.wait(lock, [&] { return given_names.asked >= count; });
  }
  [[nodiscard]] size_t asked() const {
    const std::lock_guard lock(given_names.mutex);
    return given_names.asked;
  }
};

}  // namespace ccixfer::inet::testing

extern "C" {

int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** result) {
  using ccixfer::inet::testing::given_names;
  std::unique_lock lock(given_names.mutex);
  if (name != nullptr && given_names.hanging.count(name) > 0) {
    ++given_names.asked;
    given_names.changed.notify_all();
    given_names.changed.wait(lock, [&] { return given_names.hanging.count(name) == 0; });
    return EAI_NONAME;
  }
  const auto found = name == nullptr ? given_names.known.end() : given_names.known.find(name);
  if (found == given_names.known.end()) {
    lock.unlock();
    return reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"))(name, service, hints, result);
  }
  ++given_names.asked;
  given_names.changed.notify_all();
  if (found->second.empty()) return EAI_NONAME;
  std::deque<ccixfer::inet::testing::GivenNames::Listed> list;
  for (const std::string& address : found->second) {
    auto& one = list.emplace_back();
    one.address.sin_family = AF_INET;
    one.address.sin_port = htons(static_cast<uint16_t>(std::atoi(service)));
    inet_pton(AF_INET, address.c_str(), &one.address.sin_addr);
    one.info.ai_family = AF_INET;
    one.info.ai_socktype = SOCK_STREAM;
    one.info.ai_protocol = IPPROTO_TCP;
    one.info.ai_addrlen = sizeof one.address;
    one.info.ai_addr = reinterpret_cast<sockaddr*>(&one.address);
  }
  for (size_t i = 1; i < list.size(); ++i) list[i - 1].info.ai_next = &list[i].info;
  *result = &list.front().info;
  given_names.lists[*result] = std::move(list);  // whose entries stay where they are
  return 0;
}

void freeaddrinfo(addrinfo* list) noexcept {
  using ccixfer::inet::testing::given_names;
  {
    const std::lock_guard lock(given_names.mutex);
    if (given_names.lists.erase(list) > 0) return;
  }
  reinterpret_cast<void (*)(addrinfo*)>(dlsym(RTLD_NEXT, "freeaddrinfo"))(list);
}

}  // extern "C"
