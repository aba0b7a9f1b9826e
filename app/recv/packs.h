// Small files: each file of a pack is written whole to staging, with its attributes. commit.h syncs and
// renames many of them at once. Where syncfs does not tell of lost data, each is synced by itself here.
// Runs in a job that holds the buffer. Each file has an error of its own.
#pragma once
#include <string>
#include <vector>

#include "app/recv/opened_root.h"
#include "app/recv/task.h"
#include "core/base/bytes.h"

namespace ccixfer::recv {

struct PackItem {
  FileTaskRef task;
  Bytes content;                    // in the buffer
  std::string staged;               // out: its name in staging; "" after an error
  DiskSync::Mark mark = 0;          // out: of before it was written
  int error_number = 0;             // out
  bool attributes_refused = false;  // out: as of apply_attributes
  Hash128 hash = {};                // out: of its content, with option_verify
  bool verified = false;            // out: it was read back from the disk already, since nobody may open it again
  bool damaged = false;             // out: the disk had something else then
  bool digest_differs = false;      // out: not the content that the entry promised
};
void stage_pack(OpenedRoot& root, const Policy& policy, const Owner& owner, std::vector<PackItem>& items);

}  // namespace ccixfer::recv
