// What a process needs from now on, as the command knows it: the input of enter() (sandbox.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ccixfer::sandbox {

enum class Access : uint8_t {
  read,    // files are read, directories are listed
  change,  // that, and files that are there are written
  write,   // that, and files, directories and links in it are made, changed, moved, renamed and removed
  files,   // files in this directory are made, written, replaced and removed
  remove,  // files and empty directories in this directory are removed
};

// A file, or a directory with all that is below it. What is not there, or cannot be reached, is left out. The kernel remembers
// which file or directory it is and not its name: one that takes its place later is another one.
struct Place {
  std::string path;
  Access access = Access::read;
};

// Which capabilities a process keeps, of those that it has. An account that is not root has none as a rule, and keeps none.
enum class FileRights : uint8_t {
  own,        // what the account may do: none
  read_all,   // CAP_DAC_READ_SEARCH: reads what belongs to others
  write_all,  // CAP_DAC_OVERRIDE, CAP_FOWNER: writes below directories of others
  // CAP_CHOWN, CAP_FSETID too: files get their owners, and keep set-user-ID and set-group-ID; CAP_MKNOD and CAP_SETFCAP for devices
  // and the capabilities of files
  write_all_with_owners,
};

struct Plan {
  std::vector<Place> places;
  FileRights file_rights = FileRights::own;
  bool reads_everything = false;  // any file that the account may read; only writing is confined to `places`
  bool dials = false;             // opens connections, and asks for the addresses of names to do so
  bool listens = false;           // opens further listening sockets; those that are open stay so in any case
  bool shares_memory = false;     // makes memory for peers of this host, and meets them at abstract sockets (transports/shm)
  // Gives orders to RDMA cards, which are open already. They are taken only as long as the process has the rights with which it
  // opened them, so files and capabilities are not restricted then.
  bool uses_cards = false;
  bool executes = false;  // starts other programs, which are confined as this process is
};

}  // namespace ccixfer::sandbox
