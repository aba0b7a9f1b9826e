#include "app/recv/opened_root.h"

#include <fmt/format.h>

#include <cerrno>

namespace ccixfer::recv {

int OpenedRoot::check() {
  if (staging < 0) return 0;  // a look: nothing is written that could go astray
  ports::FileIdentity now;
  int error = files.identify(ports::FileSystem::no_directory, path, now);
  if (error >= 0 && now != identity) error = -ESTALE;
  if (error >= 0) error = files.identify(fd, staging_name, now);
  if (error >= 0 && now != staging_identity) error = -ESTALE;
  if (error >= 0) return 0;
  stale.store(true);
  return -ESTALE;
}

OpenedRoot::~OpenedRoot() {
  if (fd < 0) return;
  ports::FileStat before;
  const bool has_stat = files.fstat(fd, before) >= 0;
  if (staging >= 0) {
    ports::FileIdentity now;
    const bool is_ours = files.identify(fd, staging_name, now) >= 0 && now == staging_identity;  // else somebody took it away
    const bool empty = is_ours && ledger && ledger->empty() && deliveries && deliveries->empty();
    if (check() < 0) {
      if (ledger) ledger->abandon();
      if (deliveries) deliveries->abandon();
    }
    deliveries.reset();
    if (empty) Deliveries::remove(files, staging);
    ledger.reset();
    if (empty) {
      // Another process cannot have it open: opening takes the lock that we hold until here, and begins anew when it is gone.
      for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
        files.unlink_at(staging, std::string(ledger_name) + suffix, false);
      }
    }
    files.close(staging);
    if (empty && files.unlink_at(fd, staging_name, true) >= 0 && has_stat) files.set_mtime(fd, before.mtime);
  }
  files.close(fd);
}

std::string OpenedRoot::temporary_name() { return fmt::format("{:x}{}", temporaries.fetch_add(1), temporary_suffix); }

}  // namespace ccixfer::recv
