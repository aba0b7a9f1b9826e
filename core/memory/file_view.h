// The pages of a file in the place of a buffer's memory: what is read there is what the file holds, without a copy, and a network
// that refers to memory instead of copying it refers to the file's own pages. They are the file's: written by whoever writes it,
// and gone when it is cut short or cannot be read. A page that is gone reads as zeros, here and in the kernel, and the view says
// that it is not whole: so nothing that reads the memory, whichever thread it is, can be killed by the file. Thread-safe.
#pragma once
#include <cstdint>

#include "core/base/bytes.h"

namespace ccixfer::memory {

// At `at` (whole pages, nobody else uses them): the file from `offset_bytes` on (a multiple of a page), read-only, until
// hide_file(). 0: all of it was there a moment ago. Else -errno: nothing is shown.
[[nodiscard]] int show_file(MutableBytes at, int fd, uint64_t offset_bytes);
// Whether no page of a view was found missing. Asked after reading: what was read is the file's.
[[nodiscard]] bool is_whole(Bytes view);
// Memory again in the place of a view: zeros.
void hide_file(MutableBytes view);

}  // namespace ccixfer::memory
