#include "app/send/wrapping.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::send {

Wrapped wrap(const Wrapping& wrapping, memory::Loan& buffer, uint32_t data_bytes) {
  Wrapped wrapped;
  wrapped.data_bytes = data_bytes;
  if (wrapping.compressor) {
    const session::Workspaces::Lease lease(wrapping.compressor->workspaces());
    const Bytes compressed = wrapping.compressor->compress(buffer.bytes().first(data_bytes), lease);
    if (!compressed.empty()) {
      if (buffer.shows_file()) buffer.hide();
      std::copy(compressed.begin(), compressed.end(), buffer.bytes().begin());
      wrapped.plain_bytes = data_bytes;
      wrapped.data_bytes = static_cast<uint32_t>(compressed.size());
      if (!wrapping.sealer) wrapped.compressed_check = xxh3_64(compressed);
    }
  }
  if (wrapping.sealer) {
    CHECK(!buffer.shows_file());
    session::SealingPass pass(wrapping.sealer.get());
    pass.update(buffer.bytes().first(wrapped.data_bytes));
    wrapped.mark = pass.finish();
  }
  return wrapped;
}

}  // namespace ccixfer::send
