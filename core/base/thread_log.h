// Where the log lines of one thread go. By itself a line goes to the one sink of the process, whose
// owner expects to be called by its own thread; another thread that logs hands its lines over.
#pragma once
#include "core/base/log.h"

namespace ccixfer {

// From now on lines of the calling thread that the process's log would take go to `sink`; empty: to
// the process's sink again.
void redirect_log_of_thread(LogSink sink);

}  // namespace ccixfer
