#include "transports/tcp/path_figures.h"

#include <linux/tcp.h>  // the C library's struct ends before the counts of packets, and the two headers exclude each other
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace ccixfer::tcp {

std::optional<ports::PathFigures> figures_of(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_data_segs_out) + sizeof info.tcpi_data_segs_out) return std::nullopt;
  return ports::PathFigures{info.tcpi_data_segs_out, info.tcpi_total_retrans, std::chrono::microseconds(info.tcpi_rtt),
                            std::chrono::microseconds(info.tcpi_min_rtt)};
}

}  // namespace ccixfer::tcp
