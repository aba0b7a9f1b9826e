// A fragment that a router knows of. Changed by the FragmentForwarder, but for `look`, which is the
// StandstillWatch's.
#pragma once
#include <memory>

#include "core/memory/pool.h"
#include "core/ports/fill_progress.h"
#include "core/ports/transport.h"
#include "routing/router/ref.h"
#include "routing/router/stood_still.h"

namespace ccixfer::routing {

// Where a fragment's data are, and what is done with them further on. Cut-through is `arriving`
// with something begun.
enum class Here : uint8_t { waiting, arriving, whole };
enum class Onward : uint8_t { not_yet, exposed, pushed, over };

// What the StandstillWatch keeps of a fragment, to tell whether the way out has anything of it to take.
struct FragmentLook {
  uint64_t seen_bytes = 0;     // placed_bytes of the fragment when its last new chunk was seen
  uint64_t seen_moved = 0;     // what the way out had taken by then
  uint64_t offered_moved = 0;  // 1 more than the way out had taken when the fragment was first seen there; 0: not seen yet
};

// What was offered or asked for: a fragment's data, where they are and where they go.
struct FragmentOffer {
  bool of_read = false;
  // The first pull of a read is from the application's own memory: nobody there waits for `fragment_released`.
  bool from_end = false;
  uint8_t from = 0;  // the leg where the data is; it goes to the other one
  uint8_t data_class = 0;
  uint32_t length_bytes = 0;
  uint64_t cookie = 0;
  ports::RemoteRef source;  // what to pull
  ports::RemoteRef remote;  // write: where the last router puts it
};

// The side of its ref() is 1 for its push, and 0 for all else.
struct Fragment : NamedEntry<Tag::fragment> {
  uint64_t connection = 0;  // Ref, leg 0
  Here here = Here::waiting;
  Onward onward = Onward::not_yet;
  bool pulling = false, pushing = false;  // a lower RMA of ours is in flight: the buffer stays
  FragmentOffer offer;
  memory::Loan buffer;
  // Bytes of the fragment may pass through this pipe. Those that do not are in the buffer. nullptr: all are.
  std::unique_ptr<ports::SplicePipe> splice_pipe;
  ports::Handle handle;  // exposed to the next router
  // The handle under which the fragment was exposed before, if the network still refers to bytes of the buffer.
  ports::Handle lent;
  ports::FillProgress fill;
  Instant asked_at{}, offered_at{};
  uint64_t told_bytes = 0;    // how much of it was here when the way out was told last
  Share share = Share::full;  // the share of the pool from which its buffer was taken
  FragmentLook look;
  ports::OperationResult pulled{Status::success};  // why it will not become whole
  [[nodiscard]] uint8_t to() const { return static_cast<uint8_t>(1 - offer.from); }
  [[nodiscard]] bool in_flight() const { return pulling || pushing; }
};

}  // namespace ccixfer::routing
