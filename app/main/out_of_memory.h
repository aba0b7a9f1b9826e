// What a process does when the host gives it no memory: it says so in one line and ends, where it would abort. What is durable
// stays, and the transfer can be resumed.
#pragma once

namespace ccixfer::program {

// A handler of operator new (std::set_new_handler). Exit code: that of a value of --memory that cannot be had.
[[noreturn]] void end_out_of_memory();

}  // namespace ccixfer::program
