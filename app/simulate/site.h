// The machines of a simulated world: a Site is a node with its disk and its place in the networks, and outlives crashes; a Process
// is one run of the program on it, made of the very objects that `ccixfer send` and `ccixfer recv` are made of. `ccixfer sim` and
// the swarms of the tests are built of them.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/main/acceptor.h"
#include "app/main/dialled.h"
#include "app/main/peer_gate.h"
#include "app/main/second_dial.h"
#include "app/recv/root.h"
#include "app/session/hub.h"
#include "app/session/link_seal.h"
#include "core/base/counters.h"
#include "routing/router/router.h"
#include "routing/transport/routed_transport.h"
#include "transports/sim/sim_file_system.h"
#include "transports/sim/sim_net.h"
#include "transports/sim/sim_sqlite_vfs.h"
#include "transports/sim/sim_work_pool.h"

namespace ccixfer::simulate {

struct Routing {
  routing::SubnetId subnet;
  std::vector<std::string> routers;  // native URIs
};

struct Site {
  Site(sim::Fabric& fabric_, std::string name, std::vector<sim::Attachment> networks_, const sim::FileSystemOptions& disk = {})
      : world(fabric_.world()),
        fabric(fabric_),
        node(world.add_node(std::move(name))),
        networks(std::move(networks_)),
        files(world, node, disk) {}
  sim::World& world;
  sim::Fabric& fabric;
  const sim::NodeId node;
  const std::vector<sim::Attachment> networks;
  sim::SimFileSystem files;
  ports::FileSystem* parallel = nullptr;  // a disk that many sites see: a command that sends from here reads that one
  std::optional<Routing> routing;
  Counters counters;
  uint32_t buffers = 8;
  sim::WorkPoolOptions work;               // of its processes to come
  std::optional<session::SealSetup> seal;  // who they are; none: sessions without encryption, as with --insecure
  unsigned verbose = 0;                    // 1, 2: its processes speak on standard error, as under -v and -vv
};

// As a process has it: routed, if the site is.
[[nodiscard]] std::unique_ptr<cci::Endpoint> make_endpoint(Site& site, bool listen, const std::shared_ptr<cci::MemoryTable>& memory,
                                                           ports::Entropy& entropy);

// What all processes have. A crash of the node: destroy the process; it then does nothing to the disk or the world.
class Process : public sim::Actor {
 public:
  Process(Site& site, bool listen);
  ~Process() override;
  void turn(Instant now) final;
  [[nodiscard]] Instant next_deadline() const final;
  [[nodiscard]] std::string uri() const;
  [[nodiscard]] size_t jobs() const { return work_.in_flight(); }
  [[nodiscard]] uint32_t buffers_lent() const { return pool_.count() - pool_.free_count(); }
  // After a crash of the node, before the process is destroyed: leads it to where it may be destroyed, without network and disk.
  void bury();

 protected:
  virtual void stop_user() = 0;
  [[nodiscard]] virtual bool user_idle() const = 0;
  virtual void turn_user(Instant now) = 0;
  [[nodiscard]] virtual Instant user_deadline() const = 0;
  virtual void take(const rvma::Completion& completion) = 0;

  Site& site_;
  sim::SimEntropy entropy_;
  std::unique_ptr<report::Reporter> reporter_;
  std::shared_ptr<cci::MemoryTable> memory_;
  std::unique_ptr<cci::Endpoint> endpoint_;
  memory::Pool pool_;
  sim::SimWorkPool work_;
  session::Hub hub_;
  ports::Handle pool_region_;
  program::SessionServices services_;
};

struct ListenPlan {
  bool serve = false;  // send --serve DIRECTORY; else recv --root DIRECTORY
  std::string directory;
  uint32_t sessions_max = program::sessions_max_default;
  uint64_t rate_bytes_per_s = 0;
  recv::TeamLimits team{};
  bool shares_root = false;  // --shares-root: the directory is another site's, on the parallel disk
};

// One run of a listening `ccixfer`.
class Listener final : public Process {
 public:
  Listener(Site& site, const ListenPlan& plan);
  ~Listener() override;
  [[nodiscard]] bool idle() const { return user_idle(); }  // no session left
  [[nodiscard]] program::Tally tally() const { return acceptor_ ? acceptor_->tally() : program::Tally{}; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }  // the directory cannot be opened: it does nothing

 private:
  void turn_user(Instant now) override;
  [[nodiscard]] Instant user_deadline() const override;
  void take(const rvma::Completion& completion) override;
  void stop_user() override;
  [[nodiscard]] bool user_idle() const override { return !acceptor_ || acceptor_->idle(); }

  std::optional<Error> error_;
  sim::SimSqliteVfs vfs_;
  std::unique_ptr<recv::Root> root_;
  std::unique_ptr<program::PeerGate> gate_;  // with a seal
  std::unique_ptr<program::Acceptor> acceptor_;
};

struct DialPlan {
  bool pull = false;
  std::string uri;                                  // of the listener
  std::string directory;                            // push: what is sent (its content). pull: where to
  std::string path;                                 // push: below the listener's root. pull: below the served directory
  uint32_t options = 0;                             // session::Option bits
  std::optional<recv::Asked> asked = std::nullopt;  // pull: what the peer may send, if not what it was asked for
  uint16_t lanes = 2;                               // 0: chosen from the path
  Duration timeout = std::chrono::seconds(120);
  std::optional<session::TransferId> transfer{};  // as of a command that lost its session; else a new one
  uint64_t rate_bytes_per_s = 0;
  std::optional<uint32_t> retries{};        // new sessions at most; none: as many as the timeout allows
  std::vector<std::string> sources{};       // push: what is sent, as SRC of the command line, in place of the directory's content
  std::optional<session::TeamWish> team{};  // push: it is one of several processes
  std::string second_uri{};                 // of a team: its second receiver; "": none
};

// One run of a dialling `ccixfer`: a transfer from its first dial to its end.
class Dialler final : public Process {
 public:
  Dialler(Site& site, const DialPlan& plan);
  ~Dialler() override;
  [[nodiscard]] bool ended() const { return !transfer_ || (transfer_->ended() && (!second_ || second_->is_over())); }
  // Ended, or a process that would end now: see DialledTransfer::may_be_left.
  [[nodiscard]] bool may_be_left() const { return ended() || transfer_->may_be_left(); }
  [[nodiscard]] bool is_in_use() const { return transfer_ && transfer_->is_in_use(); }
  void interrupt() { stop_user(); }  // as by SIGINT
  [[nodiscard]] std::optional<uint32_t> place() const { return transfer_ ? transfer_->place() : std::nullopt; }
  [[nodiscard]] const Error& result() const { return transfer_ ? transfer_->result() : *error_; }
  [[nodiscard]] program::Tally tally() const { return transfer_ ? transfer_->tally() : program::Tally{}; }
  [[nodiscard]] uint64_t bytes_to_second() const { return second_ ? second_->bytes_sent() : 0; }

 private:
  void turn_user(Instant now) override;
  [[nodiscard]] Instant user_deadline() const override;
  void take(const rvma::Completion& completion) override;
  void stop_user() override;
  [[nodiscard]] bool user_idle() const override { return ended(); }

  std::optional<Error> error_;
  sim::SimSqliteVfs vfs_;
  std::unique_ptr<recv::Root> root_;  // pull
  std::unique_ptr<program::DialledTransfer> transfer_;
  std::unique_ptr<program::SecondDial> second_;
};

struct RouterPlan {
  struct Device {
    sim::Attachment at;
    routing::SubnetId subnet;
    std::vector<std::string> peers;  // native URIs
    uint64_t rate_bits_per_s = 1'000'000'000;
    bool wan = false;  // no transit within the AS then
    std::vector<uint32_t> wan_to = {};
  };
  std::vector<Device> devices;
  routing::RouterOptions options;
};

inline constexpr uint16_t receiver_port = 7000;
inline constexpr uint16_t router_port = 7100;

// One run of `ccixfer route`.
class RouterProcess final : public sim::Actor {
 public:
  RouterProcess(Site& site, const RouterPlan& plan);
  ~RouterProcess() override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return router_->next_deadline(); }
  [[nodiscard]] bool ready() const { return router_->ready(); }
  // SIGTERM. `drained` is called once, from a turn: the process may then be destroyed, later.
  void drain(std::function<void()> drained);
  [[nodiscard]] bool draining() const { return draining_; }
  [[nodiscard]] uint32_t fragments_in_use() const { return router_->fragments_in_use(); }

 private:
  Site& site_;
  sim::SimEntropy entropy_;
  std::shared_ptr<cci::MemoryTable> memory_;
  std::unique_ptr<routing::Router> router_;
  std::function<void()> drained_;
  bool draining_ = false;
};

}  // namespace ccixfer::simulate
