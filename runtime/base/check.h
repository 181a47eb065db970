// CHECK: our own invariant. A failure prints the state and ends this process; never used on input
// from outside, which gets a Status.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace troupe {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* what,
                                     const std::string& state) {
  std::fprintf(stderr, "%s:%d: invariant broken: %s%s%s\n", file, line, what,
               state.empty() ? "" : " | ", state.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace troupe

#define TROUPE_CHECK(condition, state) \
  ((condition) ? (void)0 : ::troupe::CheckFailed(__FILE__, __LINE__, #condition, (state)))
