// The folder in which a head keeps its cluster: `<cluster folder>/head/` (keys, journal, lock) and
// `<cluster folder>/head.json` (how to reach it, for programs of the same user).
//
// Blocking (disk), at start only. A new cluster's folder is named by its id, which is the hash of
// its CA's key: it is made beside the others and renamed.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/secret.h"
#include "runtime/base/status.h"
#include "runtime/net/authority.h"

namespace troupe::head {

struct FolderOptions {
  std::string state_dir;  // this very folder; empty: one of `home`/clusters
  std::string home;
  std::string cluster;    // hex id to resume; empty: a new one
  Secret authority_seed;  // with `state_dir`: the authority of this seed, kept nowhere
};

struct ClusterFolder {
  std::string path;
  std::string head;  // path + "/head"
  net::Authority authority;
};

/// Errors: kNotFound (no such cluster), kInvalid (neither folder given), the disk's own.
StatusOr<ClusterFolder> OpenClusterFolder(const FolderOptions& options, std::uint64_t now_us);

/// {"cluster_id": ..., "address": ..., "pid": ..., "socket": ...}, one line; with a `client_token`
/// also that: never for a file.
std::string ContactJson(const ClusterId& cluster, const std::string& address, int pid,
                        const std::string& socket, const std::string& client_token = "");

}  // namespace troupe::head
