// What a receiver, server or router says of itself to the status page and to scripts: /status.json (ccixfer-metrics(7)). Pure:
// values in, one line of JSON out. The shape is a contract, as that of the events is: it changes only by addition, and names that
// are no UTF-8 are percent-escaped.
// Bounds: the maker's, who says how many more there are than are listed.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/report/events.h"
#include "app/report/job_run.h"

namespace ccixfer::report {

struct StatusTransfer {
  enum class State : uint8_t { waiting, running, ending };
  std::string transfer;  // as in Session
  std::string peer;      // its name in the configuration, or its address
  std::string identity;  // "": not proved
  std::string path;      // as in Ended
  State state = State::waiting;
  std::optional<uint32_t> before;  // it waits, and so many come first
  Counts counts;
  uint64_t bytes_total = 0;
  bool total_known = false;  // bytes_total is that of the whole tree
  double bytes_per_s = -1;   // < 0: not known yet
  double seconds = 0;        // since its session began
  double quiet_s = 0;        // since something of it moved last
  size_t lanes = 0;
  Waiting waiting = {};
};

struct StatusTransfers {
  bool is_receiver = true;
  size_t more = 0;  // that are not listed
  std::vector<StatusTransfer> listed;
  std::vector<std::string> ended;  // of transfer_result(), the oldest first; lines that are none are left out
};

struct StatusDevice {
  std::string name, subnet, uri;
  uint64_t rate_bits_per_s = 0;  // 0: not known
  double latency_s = 0;          // 0: not measured
  bool works = true, told = true, wan = false;
};
struct StatusLink {
  std::string router;  // 16 hexadecimal digits; "": not known
  std::string peer, device;
  bool open = false;
};
struct StatusConnection {
  std::string from, to, destination;  // the neighbours, and the address that was asked for
  std::string device_from, device_to;
  std::string state;  // "setting up", "open", "closing"
  uint64_t bytes = 0;
  double bytes_per_s = -1;  // < 0: not known yet
  uint32_t fragments = 0, buffers = 0;
  double stands_s = 0;  // nothing moves for so long, and
  std::string stands;   // why: "nothing comes from it" ...; "": it moves
};
struct StatusKnownRouter {
  std::string router;
  bool is_self = false;
  std::vector<StatusDevice> devices;  // without names
};
struct StatusRoute {
  std::string from, to;
  std::vector<std::string> subnets;
};
struct StatusRouter {
  std::string router;
  bool draining = false;
  std::vector<StatusDevice> devices;
  std::vector<StatusLink> links;
  size_t connections = 0, setting_up = 0, closing = 0, standing = 0, more = 0;
  std::vector<StatusConnection> listed;  // those that stand still first, then by what they move
  uint32_t buffers_used = 0, buffers_count = 0, fragment_bytes = 0;
  std::vector<StatusKnownRouter> routers;
  size_t more_routers = 0;
  std::vector<StatusRoute> routes;    // that forwarding takes, from the subnets of this router
  std::vector<std::string> problems;  // of the map
  std::vector<std::string> notes;     // what is not shown
};

// The runs of jobs of this account, from their history.
struct StatusJobs {
  std::vector<JobRun> runs;  // the newest, the oldest of them first
  std::string problem;       // why there may be others, in words without names; "": there are none
};

struct Status {
  std::string_view version, role;
  int64_t time_s = 0;  // since 1970
  double uptime_s = 0;
  bool has_names = true;                     // else whatever names a peer, an address or a file is left out
  uint64_t bytes_in = 0, bytes_out = 0;      // of the process, headers included
  double in_per_s = -1, out_per_s = -1;      // < 0: not known yet
  std::optional<StatusTransfers> transfers;  // of a receiver or server
  std::optional<StatusRouter> router;
  StatusJobs jobs = {};
};

[[nodiscard]] std::string status_json(const Status& status);

}  // namespace ccixfer::report
