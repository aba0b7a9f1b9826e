// What `ccixfer ping` and `ccixfer routes` ask a peer with: an endpoint that dials it, in a process that may do no more than that.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "app/config/uri.h"
#include "app/devices/node.h"
#include "app/main/commands.h"
#include "app/main/security.h"
#include "core/host/entropy.h"

namespace ccixfer::program {

class Question {
 public:
  // To the peer at `uri`. The process is confined when this has gone well. usage: the address or the device is not right, or there
  // is no identity and no --insecure; network: the endpoint could not be made.
  [[nodiscard]] static Result<std::unique_ptr<Question>> open(const Process& process, const CommonOptions& common,
                                                              const std::string& uri);
  [[nodiscard]] const std::string& address() const { return target_.address; }
  [[nodiscard]] Node& node() { return *node_; }

 private:
  explicit Question(Target target) : target_(std::move(target)) {}

  const Target target_;
  host::SystemEntropy entropy_;
  std::optional<Security> security_;  // none: --insecure. The node's trust refers to it
  std::optional<Node> node_;
};

}  // namespace ccixfer::program
