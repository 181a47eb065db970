// Joining a cluster from C++, without Python.
//
//   int main() {
//     troupe::Init();                       // TROUPE_ADDRESS, or the one cluster of this host
//     auto counter = troupe::Create<Counter>({.num_cpus = 1}, 5);
//     std::cout << counter.Call<&Counter::Add>(2).Get() << "\n";
//   }
//
// A program whose classes are to be actors calls Init before anything else of its own: the process
// of an actor is this same program, and there Init serves the actor and does not return.
#pragma once

#include <troupe/error.h>

#include <chrono>
#include <map>
#include <string>

namespace troupe {

struct InitOptions {
  /// "10.0.0.1:6400", or "unix:/path" of a head's socket. Empty: TROUPE_ADDRESS, else the one
  /// cluster that this user runs on this host.
  std::string address;
  /// The join token's file, where the head is another user's or on another host; empty:
  /// TROUPE_TOKEN_FILE. The token says which cluster it is of, and the head proves by its
  /// certificate that it is that one.
  std::string token_file;
  /// The namespace in which names of actors and groups are made and looked up; empty:
  /// TROUPE_NAMESPACE, or one of this program's own.
  std::string namespace_;
  /// Until the cluster has answered.
  std::chrono::nanoseconds timeout = std::chrono::seconds(5);
  /// How long a head that was lost is looked for again.
  std::chrono::nanoseconds return_timeout = std::chrono::seconds(30);
};

/// Connects this process. Blocks. In an actor's process it serves the actor, in a rank of a launch
/// of a function (launch.h) it runs that; then it ends the process.
/// Throws ConnectionError (nobody answers; connected already), JoinError (the cluster refuses),
/// InvalidError (what is no address).
TROUPE_API void Init(const InitOptions& options = {});
/// Ends the session, and what belonged to it: actors that are not detached, groups. Done at exit
/// too. Idempotent; nothing in an actor's process.
TROUPE_API void Shutdown();
TROUPE_API bool IsInitialized();

/// Returns the cluster's resources, and the free part of them: {"CPU": 8, "GPU": 2}. Blocks. Throws
/// ConnectionError, TimeoutError.
TROUPE_API std::map<std::string, double> ClusterResources();
TROUPE_API std::map<std::string, double> AvailableResources();

}  // namespace troupe
