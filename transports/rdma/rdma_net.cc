#include "transports/rdma/rdma_net.h"

namespace ccixfer::rdma {

std::string_view to_string(WorkStatus status) {
  switch (status) {
    case WorkStatus::success:
      return "success";
    case WorkStatus::remote_access:
      return "the peer's card refused the access";
    case WorkStatus::local_access:
      return "this end's card refused the access";
    case WorkStatus::flushed:
      return "flushed";
  }
  return "";
}

}  // namespace ccixfer::rdma
