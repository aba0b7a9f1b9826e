#include "core/memory/file_view.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "core/base/check.h"
#include "core/memory/bulk_memory.h"

namespace ccixfer::memory {
namespace {

// The views there are, for the signal handler: it may take no lock. An entry is free while `begin` is 0.
struct View {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> whole{true};
};
constexpr size_t views_max = 4096;  // 16 GiB of pieces; who wants more of them reads
constexpr uintptr_t taken = 1;      // no address
std::array<View, views_max> views;
std::atomic<size_t> views_used{0};  // none beyond was ever used
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

struct sigaction before;  // who had the signal before us
uintptr_t page_bytes = 0;

View* find(uintptr_t address) {
  const size_t used = views_used.load(std::memory_order_acquire);
  for (size_t i = 0; i < used; ++i) {
    View& view = views[i];
    const uintptr_t begin = view.begin.load(std::memory_order_acquire);
    if (begin > taken && begin <= address && address < view.end.load(std::memory_order_relaxed)) return &view;
  }
  return nullptr;
}

// A page that cannot be had: a page of zeros stands in for it, and the reader goes on.
void on_missing_page(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  View* view = find(address);
  const bool replaced = view != nullptr && ::mmap(reinterpret_cast<void*>(address & ~(page_bytes - 1)), page_bytes, PROT_READ,
                                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  if (replaced) view->whole.store(false, std::memory_order_release);
  errno = saved;
  if (replaced) return;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) return before.sa_sigaction(signal, info, context);
  // Not ours: the instruction runs again and ends the process as it would have without us.
  ::sigaction(SIGBUS, &before, nullptr);
}

void watch_pages() {
  static const bool once = [] {
    page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_missing_page;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    CHECK(::sigaction(SIGBUS, &action, &before) == 0);
    return true;
  }();
  static_cast<void>(once);
}

View* take() {
  for (size_t i = 0; i < views_max; ++i) {
    uintptr_t free = 0;
    if (!views[i].begin.compare_exchange_strong(free, taken)) continue;
    size_t used = views_used.load();
    while (used <= i && !views_used.compare_exchange_weak(used, i + 1)) {
    }
    return &views[i];
  }
  return nullptr;
}

}  // namespace

int show_file(MutableBytes at, int fd, uint64_t offset_bytes) {
  watch_pages();
  CHECK(!at.empty() && at.size() % page_bytes == 0 && offset_bytes % page_bytes == 0);
  View* view = take();
  if (view == nullptr) return -ENOBUFS;
  if (::mmap(at.data(), at.size(), PROT_READ, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset_bytes)) == MAP_FAILED) {
    const int error = errno;
    view->begin.store(0, std::memory_order_release);
    make_anonymous(at);  // a failed mmap may have taken away what was there
    return -error;
  }
  const auto begin = reinterpret_cast<uintptr_t>(at.data());
  view->whole.store(true, std::memory_order_relaxed);
  view->end.store(begin + at.size(), std::memory_order_relaxed);
  view->begin.store(begin, std::memory_order_release);
  // In one go: a fault a page costs as much as the copy that this saves. Before Linux 5.14 there is no such advice (EINVAL).
#ifdef MADV_POPULATE_READ
  if (::madvise(at.data(), at.size(), MADV_POPULATE_READ) != 0 && errno != EINVAL) {
    const int error = errno;
    hide_file(at);
    return -error;
  }
#endif
  return 0;
}

bool is_whole(Bytes view) {
  const View* found = find(reinterpret_cast<uintptr_t>(view.data()));
  return found != nullptr && found->whole.load(std::memory_order_acquire);
}

void hide_file(MutableBytes view) {
  View* found = find(reinterpret_cast<uintptr_t>(view.data()));
  CHECK(found != nullptr && found->begin.load() == reinterpret_cast<uintptr_t>(view.data()) &&
        found->end.load() - found->begin.load() == view.size());
  make_anonymous(view);
  found->begin.store(0, std::memory_order_release);
}

}  // namespace ccixfer::memory
