// Reader and Writer: bounded little-endian cursors, the only way in which bytes of the wire become values and back.
// In: any bytes, a peer's included. A read past the end gives 0 (or an empty view) and makes ok() false for good, so a decoder
// reads all its fields and asks once: `if (!in.done()) return reject`. A Writer into a span that overflows writes nothing more and
// makes ok() false; a Writer into a vector appends and never fails. Views given back by a Reader point into the bytes it was made
// of. No allocation but the vector's. Never aborts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/bytes.h"

namespace ccixfer::wire {

// Little-endian, at any address. Written out byte by byte, which the compiler makes one load or store of.
template <typename T>
[[nodiscard]] T load_little(const std::byte* from) {
  return [&]<size_t... at>(std::index_sequence<at...>) {
    return static_cast<T>((... | (uint64_t{std::to_integer<uint8_t>(from[at])} << (8 * at))));
  }
  (std::make_index_sequence<sizeof(T)>{});
}
template <typename T>
void store_little(std::byte* to, T value) {
  [&]<size_t... at>(std::index_sequence<at...>) { (..., (to[at] = static_cast<std::byte>(uint64_t{value} >> (8 * at)))); }
  (std::make_index_sequence<sizeof(T)>{});
}

class Reader {
 public:
  explicit Reader(Bytes from) : from_(from) {}

  [[nodiscard]] uint8_t u8() { return integer<uint8_t>(); }
  [[nodiscard]] uint16_t u16() { return integer<uint16_t>(); }
  [[nodiscard]] uint32_t u32() { return integer<uint32_t>(); }
  [[nodiscard]] uint64_t u64() { return integer<uint64_t>(); }
  [[nodiscard]] int64_t i64() { return static_cast<int64_t>(u64()); }
  // Exactly `count` bytes, or an empty view and not ok.
  [[nodiscard]] Bytes bytes(size_t count) {
    if (count > remaining()) {
      fail();
      return {};
    }
    const Bytes taken = from_.subspan(at_, count);
    at_ += count;
    return taken;
  }
  [[nodiscard]] std::string_view text(size_t count) { return as_text(bytes(count)); }
  // A length (u16, u32) and that many bytes. Longer than `bytes_max`: not ok.
  [[nodiscard]] Bytes bytes16(size_t bytes_max = UINT16_MAX) { return counted(u16(), bytes_max); }
  [[nodiscard]] Bytes bytes32(size_t bytes_max) { return counted(u32(), bytes_max); }
  [[nodiscard]] std::string_view text16(size_t bytes_max = UINT16_MAX) { return as_text(bytes16(bytes_max)); }
  [[nodiscard]] Bytes rest() { return bytes(remaining()); }
  void skip(size_t count) { static_cast<void>(bytes(count)); }
  // For a decoder's own bounds: a value that must not be makes the whole input bad.
  void require(bool condition) {
    if (!condition) fail();
  }
  void fail() {
    ok_ = false;
    at_ = from_.size();
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool done() const { return ok_ && remaining() == 0; }  // all read well, and nothing left over
  [[nodiscard]] size_t remaining() const { return from_.size() - at_; }
  [[nodiscard]] size_t position() const { return at_; }

 private:
  [[nodiscard]] Bytes counted(size_t count, size_t bytes_max) {
    if (count > bytes_max) fail();
    return ok_ ? bytes(count) : Bytes{};
  }
  template <typename T>
  [[nodiscard]] T integer() {
    const Bytes raw = bytes(sizeof(T));
    return raw.empty() ? T{0} : load_little<T>(raw.data());
  }

  Bytes from_;
  size_t at_ = 0;
  bool ok_ = true;
};

class Writer {
 public:
  explicit Writer(MutableBytes into) : into_(into) {}
  explicit Writer(std::vector<std::byte>& into) : vector_(&into), at_(into.size()) {}

  void u8(uint8_t value) { integer(value); }
  void u16(uint16_t value) { integer(value); }
  void u32(uint32_t value) { integer(value); }
  void u64(uint64_t value) { integer(value); }
  void i64(int64_t value) { integer(static_cast<uint64_t>(value)); }
  void bytes(Bytes value) {
    std::byte* to = room(value.size());
    if (to != nullptr && !value.empty()) std::memcpy(to, value.data(), value.size());
  }
  void text(std::string_view value) { bytes(as_bytes(value)); }
  // A length (u16, u32) and the bytes. Longer than the length can say: not ok.
  void bytes16(Bytes value) {
    if (value.size() > UINT16_MAX) return fail();
    u16(static_cast<uint16_t>(value.size()));
    bytes(value);
  }
  void bytes32(Bytes value) {
    if (value.size() > UINT32_MAX) return fail();
    u32(static_cast<uint32_t>(value.size()));
    bytes(value);
  }
  void text16(std::string_view value) { bytes16(as_bytes(value)); }
  void zeros(size_t count) {
    std::byte* to = room(count);
    if (to != nullptr && count != 0) std::memset(to, 0, count);
  }
  // The place of `count` bytes that the caller writes before the next write; nullptr: they do not fit, and ok() is false.
  [[nodiscard]] std::byte* claim(size_t count) { return room(count); }
  // Overwrites 2 or 4 bytes written before (a length or count known only later). `position` is one that position() gave.
  void patch_u16(size_t position, uint16_t value) { patch(position, value); }
  void patch_u32(size_t position, uint32_t value) { patch(position, value); }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t position() const { return at_; }  // bytes in the span or the vector so far
  // What was written from `position` on; valid until the next write.
  [[nodiscard]] Bytes since(size_t position) const {
    return {(vector_ != nullptr ? vector_->data() : into_.data()) + position, at_ - position};
  }
  void fail() { ok_ = false; }

 private:
  [[nodiscard]] std::byte* room(size_t count) {
    if (!ok_) return nullptr;
    if (vector_ != nullptr) {
      vector_->resize(at_ + count);
    } else if (count > into_.size() - at_) {
      ok_ = false;
      return nullptr;
    }
    std::byte* to = (vector_ != nullptr ? vector_->data() : into_.data()) + at_;
    at_ += count;
    return to;
  }
  template <typename T>
  void integer(T value) {
    if (std::byte* to = room(sizeof(T))) store_little(to, value);
  }
  template <typename T>
  void patch(size_t position, T value) {
    if (!ok_ || position > at_ || sizeof(T) > at_ - position) return fail();
    store_little((vector_ != nullptr ? vector_->data() : into_.data()) + position, value);
  }

  MutableBytes into_;
  std::vector<std::byte>* vector_ = nullptr;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace ccixfer::wire
