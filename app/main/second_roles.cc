// The two ends of a session with a second receiver, as roles of a program's session.
#include <utility>

#include "app/main/transfer_role.h"
#include "app/recv/second_receiver.h"
#include "app/send/second_source.h"

namespace ccixfer::program {
namespace {

class SecondSourceRole final : public TransferRole {
 public:
  SecondSourceRole(const SessionServices& services, session::Link& link, const SecondPart& part)
      : source_({link, services.pool_region, part.rate, part.path,
                 part.compress ? std::make_shared<session::Compressor>(*part.compress) : nullptr, part.disk_patience}) {}

  session::LinkHandler& handler() override { return source_; }
  void start(Instant now) override { source_.start(now); }
  void turn(Instant now) override { source_.turn(now); }
  Instant next_deadline() const override { return source_.next_deadline(); }
  bool finished() const override { return source_.finished(); }
  bool idle() const override { return source_.idle(); }
  bool in_use() const override { return false; }
  const Error* error() const override { return source_.error(); }
  Tally tally() const override {  // of the wire, and how far it came: the files are counted where they end
    Tally tally;
    tally.bytes_sent = source_.bytes_sent();
    tally.bytes = source_.bytes_placed();
    return tally;
  }
  Error end() const override { return {ErrorKind::ok, ""}; }
  Instant last_progress() const override { return source_.last_progress(); }
  std::string stuck_disk() const override { return {}; }
  bool repeatable() const override { return true; }
  void abort(const Error& error) override { source_.abort(error); }
  bool take_completion(const rvma::Completion&) override { return false; }

 private:
  send::SecondSource source_;
};

class SecondReceiverRole final : public TransferRole {
 public:
  explicit SecondReceiverRole(const recv::SecondReceiverParts& parts) : receiver_(parts) {}

  session::LinkHandler& handler() override { return receiver_; }
  void start(Instant now) override { receiver_.start(now); }
  void turn(Instant now) override { receiver_.turn(now); }
  Instant next_deadline() const override { return receiver_.next_deadline(); }
  bool finished() const override { return receiver_.finished(); }
  bool idle() const override { return receiver_.idle(); }
  bool in_use() const override { return !receiver_.idle(); }
  const Error* error() const override { return receiver_.error(); }
  Tally tally() const override {
    Tally tally;
    tally.bytes = receiver_.bytes_placed();
    return tally;
  }
  Error end() const override { return {ErrorKind::ok, ""}; }
  Instant last_progress() const override { return receiver_.last_progress(); }
  std::string stuck_disk() const override { return {}; }
  bool repeatable() const override { return true; }
  void abort(const Error& error) override { receiver_.abort(error); }
  bool take_completion(const rvma::Completion& completion) override {
    if (!receiver_.owns_mailbox(completion.mailbox)) return false;
    receiver_.on_completion(completion);
    return true;
  }

 private:
  recv::SecondReceiver receiver_;
};

}  // namespace

std::unique_ptr<TransferRole> make_second_source(const SessionServices& services, session::Link& link, const SecondPart& part) {
  return std::make_unique<SecondSourceRole>(services, link, part);
}

std::unique_ptr<TransferRole> make_second_receiver(const SessionServices& services, session::Link& link,
                                                   const std::shared_ptr<recv::SecondRoot>& root, const DestinationPart& part) {
  return std::make_unique<SecondReceiverRole>(recv::SecondReceiverParts{
      link, services.endpoint.mailboxes(), services.pool, services.work, services.entropy, part.turns, part.rate, root});
}

}  // namespace ccixfer::program
