// Which staged files of a session are shared with receivers beside this one (shared_place.h): each is made known once, by a job,
// to the helpers that ask for it.
// In: who asks, and files that end. Out: the place of a file, to those who asked. One that cannot be made is told to nobody: they
// send what they have to this receiver.
// Protocol thread; `make` runs in a job. Memory: a token for each shared file that has not ended.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "app/recv/file_handler.h"
#include "app/recv/session_jobs.h"
#include "app/session/messages.h"
#include "core/ports/entropy.h"

namespace ccixfer::recv {

class Shares {
 public:
  using Make = std::function<int(StagedFile& staged, const session::PlaceToken& token)>;
  using Tell = std::function<void(const session::SharedPlace& place)>;
  Shares(SessionJobs& jobs, Make make, FileHandler& files, ports::Entropy& entropy)
      : jobs_(jobs), make_(std::move(make)), files_(files), entropy_(entropy) {}
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

  void ask(FileInWork& file, Tell tell);
  [[nodiscard]] bool is_made(uint64_t index) const;  // others may have written into it
  void ended(uint64_t index) { shares_.erase(index); }

 private:
  struct Share {
    session::SharedPlace place;
    bool is_made = false;
    std::vector<Tell> asked;  // while it is being made
  };
  void made(uint64_t index, int error);

  SessionJobs& jobs_;
  const Make make_;
  FileHandler& files_;
  ports::Entropy& entropy_;
  std::map<uint64_t, Share> shares_;
};

}  // namespace ccixfer::recv
