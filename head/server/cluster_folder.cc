#include "head/server/cluster_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/os/directory.h"

namespace troupe::head {
namespace {

StatusOr<ClusterFolder> OpenAt(std::string path, std::uint64_t now_us, const Secret& seed = {}) {
  std::string head = path + "/head";
  TROUPE_TRY(os::MakePrivateDirectory(path, os::IfOpen::kLeave));
  TROUPE_TRY(os::MakePrivateDirectory(head));
  const bool derived = !seed.Reveal().empty();
  TROUPE_ASSIGN(net::Authority authority, derived ? net::Authority::FromSeed(seed.Reveal(), now_us)
                                                  : net::Authority::LoadOrCreate(head, now_us));
  return ClusterFolder{std::move(path), std::move(head), std::move(authority)};
}

// The CA first, in a folder with a passing name; then the name the CA gives it.
StatusOr<ClusterFolder> MakeNew(const std::string& clusters, std::uint64_t now_us) {
  std::string passing = clusters + "/.new-XXXXXX";
  std::error_code error;
  if (mkdtemp(passing.data()) == nullptr || chmod(passing.c_str(), 0700) != 0) {
    return MakeError(ErrorCode::kInvalid,
                     "cannot make a folder in " + clusters + ": " + std::strerror(errno));
  }
  TROUPE_ASSIGN(ClusterFolder folder, OpenAt(passing, now_us));
  const std::string path = clusters + "/" + folder.authority.cluster_id().Hex();
  std::filesystem::rename(passing, path, error);
  if (error) return MakeError(ErrorCode::kInvalid, "cannot make " + path + ": " + error.message());
  folder.path = path;
  folder.head = path + "/head";
  return folder;
}

}  // namespace

StatusOr<ClusterFolder> OpenClusterFolder(const FolderOptions& options, std::uint64_t now_us) {
  if (!options.state_dir.empty()) {
    return OpenAt(options.state_dir, now_us, options.authority_seed);
  }
  if (options.home.empty()) {
    return MakeError(ErrorCode::kInvalid,
                     "say where the state is kept: --state-dir DIR, or --home DIR");
  }
  const std::string clusters = options.home + "/clusters";
  TROUPE_TRY(os::MakePrivateDirectory(options.home, os::IfOpen::kLeave));
  struct stat home{};
  const bool sealed = stat(options.home.c_str(), &home) == 0 && (home.st_mode & 077) == 0;
  TROUPE_TRY(
      os::MakePrivateDirectory(clusters, sealed ? os::IfOpen::kCloseAny : os::IfOpen::kClose));
  if (options.cluster.empty()) return MakeNew(clusters, now_us);
  const std::string path = clusters + "/" + options.cluster;
  std::error_code error;
  if (!std::filesystem::exists(path + "/head/ca.key", error)) {
    return MakeError(ErrorCode::kNotFound,
                     "there is no cluster " + options.cluster + " in " + clusters);
  }
  return OpenAt(path, now_us);
}

std::string ContactJson(const ClusterId& cluster, const std::string& address, int pid,
                        const std::string& socket, const std::string& client_token) {
  return "{\"cluster_id\": \"" + cluster.Hex() + "\", \"address\": \"" + JsonEscape(address) +
         "\", \"pid\": " + std::to_string(pid) + ", \"socket\": \"" + JsonEscape(socket) + "\"" +
         (client_token.empty() ? "" : ", \"client_token\": \"" + JsonEscape(client_token) + "\"") +
         "}\n";
}

}  // namespace troupe::head
