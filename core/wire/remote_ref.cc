#include "core/wire/remote_ref.h"

namespace ccixfer::wire {

void encode(Writer& out, const ports::Handle& handle) {
  out.u8(static_cast<uint8_t>(handle.kind));
  out.u8(handle.access);
  out.u16(handle.reserved);
  out.u32(handle.generation);
  out.u64(handle.number);
  out.u64(handle.key);
  out.u64(handle.length);
}

ports::Handle decode_handle(Reader& in) {
  ports::Handle handle;
  const uint8_t kind = in.u8();
  in.require(kind <= static_cast<uint8_t>(ports::HandleKind::mailbox));
  handle.kind = static_cast<ports::HandleKind>(kind);
  handle.access = in.u8();
  handle.reserved = in.u16();
  handle.generation = in.u32();
  handle.number = in.u64();
  handle.key = in.u64();
  handle.length = in.u64();
  return in.ok() ? handle : ports::Handle{};
}

void encode(Writer& out, const ports::RemoteRef& ref) {
  encode(out, ref.handle);
  out.u64(ref.offset_bytes);
  out.u64(ref.put.source);
  out.u64(ref.put.operation);
  out.u64(ref.put.epoch);
  out.u64(ref.put.base_offset_bytes);
  out.u64(ref.put.total_bytes);
}

ports::RemoteRef decode_remote_ref(Reader& in) {
  ports::RemoteRef ref;
  ref.handle = decode_handle(in);
  ref.offset_bytes = in.u64();
  ref.put.source = in.u64();
  ref.put.operation = in.u64();
  ref.put.epoch = in.u64();
  ref.put.base_offset_bytes = in.u64();
  ref.put.total_bytes = in.u64();
  return ref;
}

}  // namespace ccixfer::wire
