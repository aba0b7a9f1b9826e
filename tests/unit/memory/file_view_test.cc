// Buffers that show the pages of a file, also of one that is cut short meanwhile.
#include "core/memory/file_view.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/memory/pool.h"

using namespace ccixfer;
using namespace ccixfer::memory;

namespace {

constexpr size_t page = 4096;

struct File {
  FILE* handle = std::tmpfile();
  explicit File(size_t pages) {
    for (size_t i = 0; i < pages; ++i) write(i, static_cast<uint8_t>(i + 1));
  }
  ~File() { std::fclose(handle); }
  [[nodiscard]] int fd() const { return ::fileno(handle); }
  void write(size_t at_page, uint8_t content) const {
    const std::vector<uint8_t> bytes(page, content);
    REQUIRE(::pwrite(fd(), bytes.data(), bytes.size(), static_cast<off_t>(at_page * page)) == static_cast<ssize_t>(page));
  }
};

bool is_all(Bytes bytes, uint8_t content) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == std::byte{content}; });
}

}  // namespace

TEST_CASE("file_view__shown_and_hidden__first_the_files_bytes_then_private_memory") {
  const File file(4);
  Pool pool(3 * page + 100, 1);
  Loan loan = pool.lend();
  std::fill(loan.bytes().begin(), loan.bytes().end(), std::byte{99});
  REQUIRE(show_file(loan.bytes().first(2 * page), file.fd(), page) == 0);
  loan.shows_file(2 * page);
  CHECK(loan.shows_file());
  CHECK(is_all(loan.bytes().first(page), 2));
  CHECK(is_all(loan.bytes().subspan(page, page), 3));
  CHECK(is_all(loan.bytes().subspan(2 * page), 99));  // behind the view: still memory
  file.write(1, 77);
  CHECK(is_all(loan.bytes().first(page), 77));  // the file's own page, no copy
  CHECK(is_whole(loan.bytes().first(2 * page)));
  Loan moved = std::move(loan);
  CHECK_FALSE(loan.shows_file());
  moved.reset();
  Loan again = pool.lend();
  CHECK_FALSE(again.shows_file());
  CHECK_FALSE(is_whole(again.bytes()));
  std::fill(again.bytes().begin(), again.bytes().end(), std::byte{55});
  std::vector<std::byte> kept(page);
  REQUIRE(::pread(file.fd(), kept.data(), kept.size(), page) == static_cast<ssize_t>(page));
  CHECK(is_all(kept, 77));
}

TEST_CASE("file_view__the_file_is_cut_short__zeros_and_no_longer_whole") {
  const File file(4);
  Pool pool(4 * page, 2);
  Loan loan = pool.lend(), other = pool.lend();
  REQUIRE(show_file(loan.bytes(), file.fd(), 0) == 0);
  loan.shows_file(4 * page);
  const File whole(4);
  REQUIRE(show_file(other.bytes(), whole.fd(), 0) == 0);
  other.shows_file(4 * page);
  REQUIRE(::ftruncate(file.fd(), page) == 0);
  CHECK(is_whole(loan.bytes()));  // nobody has looked yet
  CHECK(is_all(loan.bytes().first(page), 1));
  CHECK(is_all(loan.bytes().subspan(page), 0));
  CHECK_FALSE(is_whole(loan.bytes()));
  CHECK(is_whole(other.bytes()));
  loan.reset();
  loan = pool.lend();
  REQUIRE(show_file(loan.bytes(), whole.fd(), 0) == 0);
  loan.shows_file(4 * page);
  CHECK(is_whole(loan.bytes()));  // what befell an earlier view is forgotten
}

TEST_CASE("file_view__beyond_the_end_or_not_a_file__refused_and_memory_as_ever") {
  const File file(2);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  Pool pool(4 * page, 1);
  Loan loan = pool.lend();
  CHECK(show_file(loan.bytes(), ends[0], 0) < 0);
  CHECK(show_file(loan.bytes(), file.fd(), 0) < 0);
  CHECK_FALSE(is_whole(loan.bytes()));
  std::fill(loan.bytes().begin(), loan.bytes().end(), std::byte{5});
  CHECK(is_all(loan.bytes(), 5));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("file_view__as_many_as_there_may_be__all_are_found_and_one_more_is_refused") {
  constexpr uint32_t most = 4096;  // views_max
  const File file(2);
  Pool pool(page, most + 1);
  std::vector<Loan> loans;
  for (uint32_t i = 0; i < most; ++i) {
    loans.push_back(pool.lend());
    REQUIRE(loans.back());
    REQUIRE(show_file(loans.back().bytes(), file.fd(), i % 2 * page) == 0);
    loans.back().shows_file(page);
  }
  Loan more = pool.lend();
  std::fill(more.bytes().begin(), more.bytes().end(), std::byte{7});
  CHECK(show_file(more.bytes(), file.fd(), 0) == -ENOBUFS);
  CHECK(is_all(more.bytes(), 7));  // nothing was done to it
  CHECK_FALSE(is_whole(more.bytes()));
  for (uint32_t i = 0; i < most; ++i) {
    REQUIRE(is_whole(loans[i].bytes()));
    REQUIRE(is_all(loans[i].bytes(), static_cast<uint8_t>(1 + i % 2)));
  }
  loans[most / 2].reset();
  CHECK(show_file(more.bytes(), file.fd(), page) == 0);  // in its place
  more.shows_file(page);
  CHECK(is_all(more.bytes(), 2));
  CHECK(is_whole(more.bytes()));
}

// Ours is the memory of views and no other: whoever else reads a page that is gone ends as he would without us.
TEST_CASE("file_view__a_missing_page_of_somebody_elses_mapping__ends_the_process") {
  const File file(2);
  Pool pool(page, 1);
  Loan loan = pool.lend();
  REQUIRE(show_file(loan.bytes(), file.fd(), 0) == 0);  // the handler is installed
  loan.shows_file(page);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(2);  // a sanitizer has much to say about it
    const auto* theirs = static_cast<const volatile char*>(::mmap(nullptr, page, PROT_READ, MAP_SHARED, file.fd(), page));
    if (::ftruncate(file.fd(), 0) != 0) ::_exit(1);
    static_cast<void>(theirs[0]);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  if (WIFSIGNALED(status)) CHECK(WTERMSIG(status) == SIGBUS);  // a sanitizer has its own way to end
}

// A process of its own, for what the handler finds when it is installed: see below.
TEST_CASE("file_view__in_a_process_of_its_own", "[.]") {
  const char* had_before = std::getenv("CCIXFER_TEST_SIGBUS");
  if (had_before == nullptr) return;
  const std::string_view who(had_before);
  static int calls = 0;
  struct sigaction before {};
  if (who == "handler") {
    before.sa_flags = SA_SIGINFO;
    before.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      if (++calls > 1 || signal != SIGBUS || context == nullptr) ::_exit(43);
      ::mmap(info->si_addr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    };
  } else if (who == "plain handler") {
    before.sa_handler = [](int signal) { ::_exit(signal == SIGBUS ? 46 : 43); };
  } else {
    before.sa_flags = who == "nobody, in new words" ? SA_SIGINFO : 0;
    before.sa_handler = who == "ignored" ? SIG_IGN : SIG_DFL;
  }
  REQUIRE(::sigaction(SIGBUS, &before, nullptr) == 0);
  const File file(2);
  Pool pool(page, 1);
  Loan loan = pool.lend();
  REQUIRE(show_file(loan.bytes(), file.fd(), 0) == 0);
  loan.shows_file(page);
  const auto* theirs = static_cast<const volatile char*>(::mmap(nullptr, page, PROT_READ, MAP_SHARED, file.fd(), page));
  REQUIRE(::ftruncate(file.fd(), 0) == 0);
  if (theirs[0] != 0 || calls != 1) ::_exit(44);
  // Ours still comes to us, and to nobody else.
  if (loan.bytes()[0] != std::byte{0} || is_whole(loan.bytes())) ::_exit(45);
  ::_exit(42);
}

TEST_CASE("file_view__a_page_that_is_not_ours__goes_to_who_had_the_signal_before") {
  const auto end_of = [](const char* had_before) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(2);
      ::setenv("CCIXFER_TEST_SIGBUS", had_before, 1);
      ::execl("/proc/self/exe", "unit", "file_view__in_a_process_of_its_own", static_cast<char*>(nullptr));
      ::_exit(45);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
  };
  const int handled = end_of("handler");
  CHECK((WIFEXITED(handled) && WEXITSTATUS(handled) == 42));
  const int plainly = end_of("plain handler");
  CHECK((WIFEXITED(plainly) && WEXITSTATUS(plainly) == 46));
  for (const char* nobody : {"nobody", "nobody, in new words", "ignored"}) {
    INFO(nobody);
    const int ended = end_of(nobody);
    CHECK((WIFSIGNALED(ended) && WTERMSIG(ended) == SIGBUS));
  }
}
