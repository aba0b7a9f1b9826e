// Memory for bulk data: zeros, and an error where the host has too little.
#include "core/memory/bulk_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <utility>

#include "core/memory/pool.h"

using namespace ccixfer;
using namespace ccixfer::memory;

TEST_CASE("bulk_memory__more_than_this_host_has__is_told_and_nothing_is_mapped") {
  const auto has_bytes = static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  CHECK(fits_this_host(has_bytes));
  for (const size_t bytes : {has_bytes + 1, size_t{1} << 60, ~size_t{0}}) {
    const auto made = BulkMemory::make(bytes);
    REQUIRE_FALSE(made);
    CHECK(made.error().kind == ErrorKind::usage);
    CHECK(made.error().message.find(std::to_string(bytes) + " bytes") != std::string::npos);
    CHECK(made.error().message.find(std::to_string(has_bytes)) != std::string::npos);
  }
}

TEST_CASE("bulk_memory__beyond_a_limit_of_address_space__is_told") {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit little{pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + (256u << 20), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &little) == 0);
  const auto made = BulkMemory::make(size_t{1} << 30);
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  REQUIRE_FALSE(made);
  CHECK(made.error().kind == ErrorKind::usage);
  CHECK(made.error().message.find("1073741824 bytes") != std::string::npos);
  CHECK(made.error().message.find("ulimit -v") != std::string::npos);
}

TEST_CASE("bulk_memory__made__is_zeros_and_a_pools") {
  CHECK(BulkMemory::make(0).value().bytes().empty());
  auto made = BulkMemory::make(Pool::memory_bytes(5000, 3));
  REQUIRE(made);
  CHECK(made->bytes().size() == 3 * 8192);
  const std::byte* at = made->bytes().data();
  Pool pool(5000, 3, std::move(*made));
  CHECK(pool.memory().data() == at);
  const Loan loan = pool.lend();
  CHECK(loan.bytes().size() == 5000);
  CHECK(loan.bytes()[4999] == std::byte{0});
}
