// The values of options that the parser takes as text: checked here, after parsing, so that every complaint has the same shape.
// In: the texts. Out: the fields of the options. Errors: ErrorKind::usage.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "app/main/cli.h"
#include "core/base/result.h"

namespace ccixfer::program {

struct OptionTexts {
  std::string bwlimit, timeout, retries, lanes, memory, stop_at, sessions, count, seed, seeds, expires, uses, expire, staging_age;
};

[[nodiscard]] tl::unexpected<Error> usage(std::string_view what, std::string_view where, std::string_view what_to_do);
[[nodiscard]] Result<uint64_t> whole_number(std::string_view option, std::string_view text, uint64_t low, uint64_t high);
[[nodiscard]] Result<void> take_rate(const OptionTexts& texts, RateTable& rate);
[[nodiscard]] Result<uint64_t> memory_of(const OptionTexts& texts);
[[nodiscard]] Result<Duration> timeout_of(const OptionTexts& texts);
[[nodiscard]] Result<void> take_transfer_values(const OptionTexts& texts, TransferOptions& transfer);
[[nodiscard]] Result<void> take_listen_values(const OptionTexts& texts, const CommonOptions& common, ListenOptions& listen);
// The first option that only the side that dials may have; nullptr: there is none.
[[nodiscard]] const char* option_of_dialler(const TransferOptions& asked, const OptionTexts& texts);
// The first option of a side that listens is refused: it goes only with the option `with`.
[[nodiscard]] Result<void> no_listening(const ListenOptions& listen, std::string_view with);

}  // namespace ccixfer::program
