// Seals the data of segments as they are read, and opens them as they are written. Data are sealed once, in the job that reads
// them, whatever lane takes the segment later; so what goes out again on another lane is the same ciphertext. The mark says how to
// open it. It travels in the trailer of the segment, which is sealed for its put (segment.h).
//
// A null pointer in place of a DataSealer or DataOpener is --insecure: passes do nothing, and nothing is checked by them.
// Thread: shared by the jobs of a session; each pass belongs to one job.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "core/base/bytes.h"
#include "core/trust/seal_key.h"

namespace ccixfer::session {

struct DataMark {
  uint64_t number = 0;  // of this key, never used for other data
  trust::Tag tag{};
  friend bool operator==(const DataMark&, const DataMark&) = default;
};

class DataSealer {
 public:
  explicit DataSealer(trust::SealKey key) : key_(std::move(key)) {}

 private:
  friend class SealingPass;
  const trust::SealKey key_;
  std::atomic<uint64_t> next_number_{0};
};

// The data of one segment, block by block in their order.
class SealingPass {
 public:
  explicit SealingPass(DataSealer* sealer);
  void update(MutableBytes block) {
    if (key_) key_->update(block);
  }
  [[nodiscard]] DataMark finish();

 private:
  std::optional<trust::SealKey> key_;
  uint64_t number_ = 0;
};

class DataOpener {
 public:
  explicit DataOpener(trust::SealKey key) : key_(std::move(key)) {}

 private:
  friend class OpeningPass;
  const trust::SealKey key_;
};

class OpeningPass {
 public:
  OpeningPass(const DataOpener* opener, const DataMark& mark);
  void update(MutableBytes block) {
    if (key_) key_->update(block);
  }
  // Whether what update() opened is what was sealed. Nothing of it counts before.
  [[nodiscard]] bool finish();

 private:
  std::optional<trust::SealKey> key_;
  DataMark mark_;
};

}  // namespace ccixfer::session
