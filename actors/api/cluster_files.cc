#include "actors/api/cluster_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/property_tree/json_parser.hpp>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/os/text.h"

namespace troupe::api {
namespace {

namespace files = std::filesystem;

constexpr char kEmbedded[] = "troupe-embedded-";
constexpr char kSeveral[] = "troupe-cluster-";

files::path Home() {
  const std::string given = VariableOf("TROUPE_HOME");
  return files::absolute(given.empty() ? files::path(VariableOf("HOME")) / ".troupe"
                                       : files::path(given));
}

bool IsMine(const files::path& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid == ::getuid();
}

/// Folders `prefix`* of `parent` that are this user's.
std::vector<files::path> FoldersIn(const files::path& parent, const std::string& prefix) {
  std::vector<files::path> found;
  std::error_code ignored;
  for (const auto& entry : files::directory_iterator(parent, ignored)) {
    if (entry.path().filename().string().rfind(prefix, 0) == 0 && IsMine(entry.path()) &&
        entry.is_directory(ignored))
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool Runs(int pid, const std::string& program) {
  const auto stat = os::ReadText("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return false;
  const std::size_t open = stat->find('(');
  const std::size_t close = stat->rfind(')');
  if (open == stat->npos || close == stat->npos || close + 2 >= stat->size()) return false;
  const char state = (*stat)[close + 2];
  return state != 'Z' && state != 'X' && stat->substr(open + 1, close - open - 1) == program;
}

std::optional<LocalCluster> ClusterOf(const files::path& record, bool of_a_program) {
  const auto text = os::ReadText(record.string());
  if (!text || !IsMine(record)) return std::nullopt;
  boost::property_tree::ptree tree;
  try {
    std::istringstream stream(*text);
    boost::property_tree::read_json(stream, tree);
  } catch (const boost::property_tree::json_parser_error&) {
    return std::nullopt;
  }
  LocalCluster cluster;
  cluster.address = tree.get("address", std::string());
  cluster.socket = tree.get("socket", std::string());
  cluster.of_a_program = of_a_program;
  if (!Runs(tree.get("pid", 0), "troupe-head") || cluster.socket.empty()) return std::nullopt;
  return cluster;
}

/// The folder for state that a home on a network file system is not for; "" where it is not there.
std::vector<files::path> StateRoots() {
  const std::string state = VariableOf("XDG_STATE_HOME");
  const files::path local = state.empty()
                                ? files::path("/var/tmp/troupe-" + std::to_string(::getuid()))
                                : files::path(state) / "troupe";
  return {Home(), local};
}

}  // namespace

std::string VariableOf(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string NumericAddress(const std::string& address) {
  constexpr std::string_view kLocal = "localhost:";
  return address.rfind(kLocal, 0) == 0 ? "127.0.0.1:" + address.substr(kLocal.size()) : address;
}

std::vector<LocalCluster> LocalClusters(bool of_this_home) {
  std::vector<LocalCluster> found;
  const auto add = [&](const files::path& record, bool of_a_program) {
    if (auto cluster = ClusterOf(record, of_a_program)) found.push_back(*std::move(cluster));
  };
  for (const files::path& root : StateRoots()) {
    for (const files::path& folder : FoldersIn(root / "clusters", ""))
      add(folder / "head.json", false);
    if (!found.empty()) break;
  }
  const std::string given = VariableOf("TMPDIR");
  const files::path temporary = given.empty() ? files::path("/tmp") : files::path(given);
  for (const files::path& folder : FoldersIn(temporary, kEmbedded)) {
    if (!of_this_home || os::ReadText((folder / "home").string()).value_or("") == Home().string())
      add(folder / "head.json", true);
  }
  if (of_this_home) return found;
  for (const files::path& folder : FoldersIn(temporary, kSeveral)) {
    for (const files::path& each : FoldersIn(folder / "clusters", ""))
      add(each / "head.json", true);
  }
  return found;
}

StatusOr<LocalCluster> OnlyLocalCluster() {
  std::vector<LocalCluster> all = LocalClusters(/*of_this_home=*/true);
  const auto by_program = std::find_if(all.begin(), all.end(),
                                       [](const LocalCluster& each) { return each.of_a_program; });
  if (by_program != all.begin()) all.erase(by_program, all.end());
  if (all.size() == 1) return all[0];
  std::string text;
  for (const LocalCluster& each : all) text += (text.empty() ? "" : ", ") + each.address;
  return MakeError(
      ErrorCode::kConnection,
      "no address was given, and " +
          (all.empty() ? "no cluster of this user runs on this host (TROUPE_HOME: " +
                             Home().string() + ")\n  start one: troupe start --head"
                       : "several clusters run on this host: " + text) +
          "\n  or give its address: InitOptions::address, or TROUPE_ADDRESS=HOST:PORT with "
          "TROUPE_TOKEN_FILE");
}

}  // namespace troupe::api
