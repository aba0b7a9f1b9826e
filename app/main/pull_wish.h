// What a pull asks of each SRC_URI, and what does not go together with several of them.
// Errors: usage.
#pragma once
#include <optional>
#include <vector>

#include "app/main/cli.h"
#include "app/main/rule_words.h"
#include "app/main/session_trust.h"
#include "core/base/result.h"

namespace ccixfer::program {

// Of each place what is chosen there (chosen_of). Reads the files that are named: what is confined cannot.
[[nodiscard]] Result<std::vector<std::optional<Chosen>>> chosen_of_each(const std::vector<Place>& places,
                                                                        const TransferOptions& transfer);

}  // namespace ccixfer::program
