// The NDJSON events of --json: one line each, without the newline. Pure: values in, text out. The shape is a contract (the
// program's manual page lists every member); it changes only by addition. Text: names are bytes. A name that is UTF-8 stands as it
// is (control characters as JSON escapes, all beyond ASCII as \u); any other is percent-escaped and flagged with `escaped`: true.
// `t` is seconds since the start of the process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace ccixfer::report {

struct Hop {
  std::string transport;
  std::string node;
  std::string subnet;            // "AS:SUBNET", empty when not routed
  double round_trip_s = 0;       // from its dialler to the end of the path
  uint64_t rate_bits_per_s = 0;  // 0: unknown, left out
  std::string peer = {};         // who answers there, as its dialler has proved; "": nobody knows, left out
  std::string protection = {};   // "aes-256-gcm"; "": none, left out
};

struct Session {
  std::string transfer;  // 32 hexadecimal digits
  std::string peer;
  std::vector<Hop> path;
  std::string identity = {};  // what the peer proved, from end to end; empty: nothing (--insecure), and left out
};

// What a transfer waits for.
enum class Waits : uint8_t { unknown, source_disk, network, destination_disk, source_or_network, bandwidth_limit };
struct Waiting {
  Waits what = Waits::unknown;
  std::string hop = {};  // of the network: the slowest of several, as its node; empty: not known
};

[[nodiscard]] const char* name_of(Waits what);  // "source_disk" ...; "": unknown

struct Progress {
  uint64_t files = 0;
  uint64_t bytes = 0;  // durable at the receiver
  uint64_t bytes_total = 0;
  double bytes_per_s = 0;
  double eta_s = -1;       // < 0: unknown, null in the event
  double stalled_s = 0;    // without progress, when that is worth a word (stall_told_after); else 0, left out
  double gives_up_s = -1;  // the timeout that ends it, beside stalled_s; < 0: none
  Waiting waiting = {};    // left out when it is unknown
};

struct File {
  std::string path;
  uint64_t bytes = 0;
  std::string status;  // ok unchanged failed skipped would-send
  std::string reason;
  std::string transfer;  // as in Session; empty: left out
};

// What was done to one name (-i).
struct Item {
  std::string letters;  // eleven, rsync's
  std::string name;     // with a slash if it is a directory
  std::string target;   // of a link; empty: left out
};

// How the files of a transfer ended, and what it moved.
struct Counts {
  uint64_t files = 0, files_unchanged = 0, files_failed = 0;
  uint64_t bytes = 0, bytes_sent = 0, segments_resent = 0;
  bool helped = false;  // of a process that did its part of a transfer that another one leads: what it sent itself
};

// Entries of a transfer by what became of them, as far as `file` events told: what Counts does not have.
struct Others {
  uint64_t skipped = 0, deleted = 0;
};

struct Done {
  ErrorKind kind = ErrorKind::ok;
  std::string reason = {};  // for people; told of what did not end well
  Counts counts = {};
  double seconds = 0;
  Others others = {};
  std::vector<std::pair<std::string, uint64_t>> counters;  // all of them, by name
};

// The end of a session at the side that accepted it.
struct Ended {
  std::string transfer;  // as in Session
  std::string peer;      // as in Session
  std::string path;      // where to, below the receiver's root, or what of the served directory; "": all of it
  std::string name;      // the peer's in the configuration, for people; "": it has none
  bool serves = false;   // we sent
  ErrorKind kind = ErrorKind::ok;
  std::string reason;
  // Of the transfer, and of this process: what earlier sessions of it brought is counted once.
  Counts counts;
};

// A transfer that has ended, for the event `transfer`, the history of a receiver, and --on-complete.
struct Transfer {
  std::string transfer;  // as in Session
  std::string peer;      // who: its name in the configuration, or its address
  std::string identity;  // of the peer; "": not proved
  bool is_push = true;   // the source dialled
  std::string path;      // as in Ended, or of the destination
  ErrorKind kind = ErrorKind::ok;
  std::string reason;
  Counts counts;
  int64_t began_s = 0;  // since 1970; 0: nobody knows
  int64_t ended_s = 0;
};

struct Ping {
  std::string uri;
  uint32_t max_send_bytes = 0;
  std::vector<Hop> path;
  std::vector<double> round_trips_s;
  uint32_t fragment_bytes = 0;       // 0: RMA is not cut, left out
  std::optional<size_t> bottleneck;  // index of the hop with the lowest rate; none: a rate is unknown
};

struct DeviceLine {
  std::string name, transport, interface, address, state;
  uint64_t rate_bits_per_s = 0;  // 0: unknown, null in the event
  std::string subnet;            // "AS:SUBNET" when it routes
  bool is_default = false;
  uint32_t priority = 0;
};

[[nodiscard]] std::string ready_event(double t, const std::vector<std::string>& uris);
[[nodiscard]] std::string session_event(double t, const Session& session);
[[nodiscard]] std::string progress_event(double t, const Progress& progress);
[[nodiscard]] std::string file_event(double t, const File& file);
[[nodiscard]] std::string item_event(double t, const Item& item);
[[nodiscard]] std::string retry_event(double t, std::string_view reason);
[[nodiscard]] std::string transfer_event(double t, const Transfer& transfer);
[[nodiscard]] std::string transfer_result(const Transfer& transfer);  // the same object without `event` and `t`, in one line
[[nodiscard]] std::string ended_event(double t, const Ended& ended);
// The peer has no room for the session yet, and that many come before it.
[[nodiscard]] std::string waiting_event(double t, std::string_view transfer, uint32_t before);
[[nodiscard]] std::string done_event(double t, const Done& done);
[[nodiscard]] std::string ping_event(double t, const Ping& ping);
// One line of `routes`.
struct RouteLine {
  std::string from, to;  // "AS:SUBNET"
  std::vector<std::string> subnets;
  std::vector<std::string> metrics;
  std::vector<uint64_t> cost;  // by metric
  bool chosen = false;         // forwarding takes it
  std::string reason;          // and why
};
[[nodiscard]] std::string router_event(double t, std::string_view name, const std::vector<std::string>& devices);
[[nodiscard]] std::string route_event(double t, const RouteLine& route);
// SIGHUP: what came of it. `reason` empty: taken, and the router has so many devices now.
[[nodiscard]] std::string reloaded_event(double t, size_t devices, std::string_view reason);
// What one worker of a router did.
struct WorkerLine {
  size_t worker = 0;
  size_t connections = 0;  // open now
  uint64_t routed_connections = 0;
  uint64_t routed_messages = 0;
  uint64_t routed_bytes = 0;
};
[[nodiscard]] std::string workers_event(double t, const std::vector<WorkerLine>& workers);
[[nodiscard]] std::string device_event(double t, const DeviceLine& device);
// `devices`: what this host lacks for a transport.
struct TransportLine {
  std::string transport;
  bool usable = false;  // in spite of it; it is slower then
  std::string missing, remedy;
};
[[nodiscard]] std::string transport_event(double t, const TransportLine& transport);
// Who this account is: `keygen` and `id`.
struct IdentityLine {
  std::string id;       // cx1-...
  std::string file;     // of the key
  std::string subject;  // of the certificate; empty: none, left out
};
[[nodiscard]] std::string identity_event(double t, const IdentityLine& identity);
// Any text as one event with the text as member `key`: for reports whose lines are made elsewhere.
[[nodiscard]] std::string text_event(double t, std::string_view event, std::string_view key, std::string_view text);

}  // namespace ccixfer::report
