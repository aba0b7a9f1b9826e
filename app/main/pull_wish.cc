#include "app/main/pull_wish.h"

#include <utility>

namespace ccixfer::program {

Result<std::vector<std::optional<Chosen>>> chosen_of_each(const std::vector<Place>& places, const TransferOptions& transfer) {
  if (transfer.sync.files_from && places.size() > 1)
    return fail(ErrorKind::usage, "--files-from needs one SRC_URI: that of a directory");
  if (transfer.sync.deletes && places.size() > 1)  // each would delete what the others have brought
    return fail(ErrorKind::usage, "--delete needs one SRC_URI: pull from each into a directory of its own");
  std::vector<std::optional<Chosen>> each;
  for (const Place& place : places) {
    auto chosen = chosen_of({place.targets.front().path}, transfer.sync, transfer.from0);
    if (!chosen) return tl::unexpected(chosen.error());
    if (auto fits = check_path(*chosen ? (*chosen)->top + "/" : ""); !fits) return tl::unexpected(fits.error());
    if (auto travels = *chosen ? (*chosen)->list.check_travel() : Result<void>(); !travels) return tl::unexpected(travels.error());
    each.push_back(std::move(*chosen));
  }
  return each;
}

}  // namespace ccixfer::program
