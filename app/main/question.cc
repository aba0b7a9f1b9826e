#include "app/main/question.h"

#include "app/main/confinement.h"
#include "app/main/process_trust.h"

namespace ccixfer::program {

Result<std::unique_ptr<Question>> Question::open(const Process& process, const CommonOptions& common, const std::string& uri) {
  auto target = split_target(uri);
  if (!target) return tl::unexpected(target.error());
  auto security = security_of_process(process, common, policy::WithoutIdentity::refuse);
  if (!security) return tl::unexpected(security.error());
  const auto device = chosen_device(process.config, common.device, transport_of(*target));
  if (!device) return tl::unexpected(device.error());
  if (auto there = check_target(*device, *target); !there) return tl::unexpected(there.error());
  std::unique_ptr<Question> question(new Question(std::move(*target)));
  question->security_ = std::move(*security);
  NodeOptions options;
  options.waker = process.loop.waker();
  options.trust = process_trust(question->security_, ListenerKind::transfers);
  auto node = make_node(*device, options, question->entropy_, process.counters);
  if (!node) return tl::unexpected(node.error());
  question->node_ = std::move(*node);
  sandbox::Plan plan = plan_of_question();
  add_trust(plan, question->security_);
  if (auto confined = confine(process, plan); !confined) return tl::unexpected(confined.error());
  return question;
}

}  // namespace ccixfer::program
