// Search for a cluster on this host, by the files that its parts leave: the same rules as
// troupe.init()'s (troupe/_cluster/home.py, local_clusters.py).
//
// Blocking (disk). Nothing is made; what is not this user's alone is not believed.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace troupe::api {

struct LocalCluster {
  std::string address;        // "10.0.0.1:6400"
  std::string socket;  // the head's socket, for programs of its user
  bool of_a_program = false;  // ends with the program that made it by init()
};

/// Returns this user's clusters that run on this host: the ones that were started by a command
/// first. With `of_this_home` those that programs made are the ones with this process's
/// TROUPE_HOME.
std::vector<LocalCluster> LocalClusters(bool of_this_home);
/// The one that "auto" means. kConnection: there is none, or more than one.
StatusOr<LocalCluster> OnlyLocalCluster();
/// Returns a variable of this process's environment; "" if it is not set.
std::string VariableOf(const char* name);
/// "localhost:6400" as heads of this host write it.
std::string NumericAddress(const std::string& address);

}  // namespace troupe::api
