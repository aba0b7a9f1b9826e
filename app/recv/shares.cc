#include "app/recv/shares.h"

#include <cstring>
#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {

bool Shares::is_made(uint64_t index) const {
  const auto at = shares_.find(index);
  return at != shares_.end() && at->second.made;
}

void Shares::ask(FileInWork& file, uint32_t who, Tell tell) {
  const uint64_t index = file.task().index;
  const auto [at, is_new] = shares_.try_emplace(index);
  Share& share = at->second;
  if (share.made) return tell(share.place);
  share.asked.insert_or_assign(who, std::move(tell));
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
  const auto fd = std::make_shared<int>(0);
  jobs_.submit([this, staged, fd, place = share.place] { *fd = make_(*staged, place); }, [this, index, fd] { made(index, *fd); });
}

void Shares::made(uint64_t index, int fd) {
  FileInWork* const file = files_.find(index);
  CHECK(file != nullptr);  // it is held
  const auto at = shares_.find(index);
  CHECK(at != shares_.end());
  const std::map<uint32_t, Tell> asked = std::exchange(at->second.asked, {});
  if (fd < 0) {
    log(LogLevel::info, "{}: no other receiver can write into it: {}", file->task().path, describe_errno(-fd));
    shares_.erase(at);  // whoever asks again may have more luck
  } else {
    at->second.made = std::make_shared<HeldFile>(disk_, fd);
    for (const auto& [who, tell] : asked) tell(at->second.place);
  }
  file->let_go();
  files_.on_job_ended(index);
}

}  // namespace ccixfer::recv
