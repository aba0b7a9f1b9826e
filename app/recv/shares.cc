#include "app/recv/shares.h"

#include <cstring>
#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {

bool Shares::is_made(uint64_t index) const {
  const auto at = shares_.find(index);
  return at != shares_.end() && at->second.is_made;
}

void Shares::ask(FileInWork& file, Tell tell) {
  const uint64_t index = file.task().index;
  const auto [at, is_new] = shares_.try_emplace(index);
  Share& share = at->second;
  if (share.is_made) return tell(share.place);
  share.asked.push_back(std::move(tell));
  if (!is_new) return;
  const std::shared_ptr<StagedFile> staged = files_.pieces_of(file).staged();
  share.place.index = index;
  share.place.size_bytes = file.task().size_bytes;
  share.place.name = staged->name();
  for (size_t i = 0; i < share.place.token.size(); i += sizeof(uint64_t)) {
    const uint64_t word = entropy_.next_u64();
    std::memcpy(share.place.token.data() + i, &word, sizeof word);
  }
  file.hold();
  const auto error = std::make_shared<int>(0);
  jobs_.submit([this, staged, error, token = share.place.token] { *error = make_(*staged, token); },
               [this, index, error] { made(index, *error); });
}

void Shares::made(uint64_t index, int error) {
  FileInWork* const file = files_.find(index);
  CHECK(file != nullptr);  // it is held
  const auto at = shares_.find(index);
  CHECK(at != shares_.end());
  const std::vector<Tell> asked = std::exchange(at->second.asked, {});
  if (error < 0) {
    log(LogLevel::info, "{}: no other receiver can write into it: {}", file->task().path, describe_errno(-error));
    shares_.erase(at);  // whoever asks again may have more luck
  } else {
    at->second.is_made = true;
    for (const Tell& tell : asked) tell(at->second.place);
  }
  file->let_go();
  files_.on_job_ended(index);
}

}  // namespace ccixfer::recv
