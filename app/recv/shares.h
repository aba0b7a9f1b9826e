// Which staged files of a session are shared with receivers beside this one (shared_place.h): each is made known once, by a job,
// to the helpers that ask for it.
// In: who asks, and files that end. Out: the place of a file, to those who asked. One that cannot be made is told to nobody: they
// send what they have to this receiver.
// Protocol thread; `make` runs in a job. Memory: a token for each shared file that has not ended.
#pragma once
#include <cstdint>
#include <functional>
#include <map>

#include "app/recv/file_handler.h"
#include "app/recv/held.h"
#include "app/recv/session_jobs.h"
#include "app/session/messages.h"
#include "core/ports/entropy.h"

namespace ccixfer::recv {

class Shares {
 public:
  // A descriptor that holds the share, or -errno.
  using Make = std::function<int(StagedFile& staged, const session::SharedPlace& place)>;
  using Tell = std::function<void(const session::SharedPlace& place)>;
  Shares(SessionJobs& jobs, Make make, ports::FileSystem& disk, FileHandler& files, ports::Entropy& entropy)
      : jobs_(jobs), make_(std::move(make)), disk_(disk), files_(files), entropy_(entropy) {}
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

  void ask(FileInWork& file, uint32_t who, Tell tell);
  [[nodiscard]] bool is_made(uint64_t index) const;  // others may have written into it
  void ended(uint64_t index) { shares_.erase(index); }

 private:
  struct Share {
    session::SharedPlace place;
    HeldFileRef made;                // while it is made: the lock that shows others that this receiver shares it
    std::map<uint32_t, Tell> asked;  // by whom, while it is being made
  };
  void made(uint64_t index, int fd);

  SessionJobs& jobs_;
  const Make make_;
  ports::FileSystem& disk_;
  FileHandler& files_;
  ports::Entropy& entropy_;
  std::map<uint64_t, Share> shares_;
};

}  // namespace ccixfer::recv
