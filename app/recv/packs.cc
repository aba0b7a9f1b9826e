#include "app/recv/packs.h"

#include <algorithm>
#include <cerrno>

#include "app/recv/at_rest.h"
#include "app/recv/pieces.h"
#include "app/session/entry.h"

namespace ccixfer::recv {
namespace {

bool is_promised_content(const PackItem& item) {
  if (!item.task->has_digest) return true;
  std::vector<Hash128> hashes;
  for (Bytes rest = item.content; !rest.empty();) {
    const size_t length = std::min<size_t>(rest.size(), session::piece_bytes);
    hashes.push_back(xxh3_128(rest.first(length)));
    rest = rest.subspan(length);
  }
  return session::file_digest(hashes) == item.task->digest;
}

constexpr uint32_t owner_may_read = 0400;

int stage(OpenedRoot& root, const Policy& policy, PackItem& item) {
  const Attributes& attributes = item.task->attributes;
  std::string name = root.temporary_name();
  item.mark = root.disk->mark();
  const bool verify = policy.has(session::option_verify) && !item.content.empty();
  const bool verify_now = verify && (attributes.mode & owner_may_read) == 0;  // commit.h could not open it
  const ports::OpenMode mode = verify_now ? ports::OpenMode::read_write : ports::OpenMode::write;
  const ports::OpenFlags flags{.mode = mode, .create = true, .exclusive = true};
  if (verify) item.hash = xxh3_128(item.content);
  const int fd = root.files.open(root.staging, name, flags, attributes.mode & 0777u);
  if (fd < 0) return root.judged(fd);
  at_writer();
  const bool sparse = policy.has(session::option_sparse);
  int error = sparse ? write_sparse(root.files, fd, item.content, 0) : write_all(root.files, fd, item.content, 0);
  if (error >= 0 && sparse) error = root.files.truncate(fd, item.content.size());  // what ends in a hole is too short
  const Current current{policy.created_mode(attributes), policy.uid, policy.gid};
  if (error >= 0) error = apply_attributes(root.files, fd, policy, current, attributes);
  const bool refused = error == attributes_refused;
  if (error >= 0 && (!root.syncfs_tells || verify_now)) error = root.files.fsync(fd);
  if (error >= 0 && verify_now) {
    DiskReader reader(root.files);
    reader.begin(root.staging, name, fd);
    const AtRest found = reader.compare(0, item.content.size(), item.hash);
    if (found == AtRest::unreadable) error = -reader.error_number();
    item.damaged = found == AtRest::damaged;
    item.verified = true;
  }
  const int closed = root.files.close(fd);  // NFS and quotas say only here that there was no room, or that the data was lost
  if (error >= 0) error = closed;
  if (error < 0 || item.damaged) {
    root.files.unlink_at(root.staging, name, false);
    return std::min(error, 0);
  }
  item.attributes_refused = refused;
  item.staged = std::move(name);
  return 0;
}

}  // namespace

void stage_pack(OpenedRoot& root, const Policy& policy, const Owner& owner, std::vector<PackItem>& items) {
  for (PackItem& item : items) {
    owner.step();
    item.digest_differs = !is_promised_content(item);
    if (item.digest_differs) continue;
    if (const int error = stage(root, policy, item); error < 0) item.error_number = -error;
    if (is_fatal(item.error_number)) return;  // the session ends: no use in trying the others
  }
}

}  // namespace ccixfer::recv
