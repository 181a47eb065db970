#include "worker/node_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/net/files.h"
#include "runtime/os/directory.h"
#include "runtime/os/text.h"

namespace troupe::worker {
namespace {

constexpr char kLock[] = "/lock";
constexpr char kPrefix[] = "n-";

UniqueFd Lock(const std::string& folder) {
  UniqueFd fd(open((folder + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.valid() && flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.Reset();
  return fd;
}

// Folders whose lock nobody holds were left by workers that were killed.
void RemoveStale(const std::string& socket_dir) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(socket_dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(kPrefix, 0) != 0 || !entry.is_directory(error)) continue;
    const UniqueFd lock = Lock(entry.path().string());
    if (lock.valid()) os::RemoveTree(entry.path().string());
  }
}

std::uint64_t NumberIn(const std::string& json, const std::string& key) {
  const std::string mark = "\"" + key + "\":";
  const std::size_t at = json.find(mark);
  std::uint64_t value = 0;
  if (at != std::string::npos) {
    std::from_chars(json.data() + at + mark.size(), json.data() + json.size(), value);
  }
  return value;
}

}  // namespace

NodeFiles::NodeFiles(std::string node_dir, std::string socket_dir, UniqueFd lock,
                     UniqueFd socket_lock)
    : node_dir_(std::move(node_dir)),
      socket_dir_(std::move(socket_dir)),
      lock_(std::move(lock)),
      socket_lock_(std::move(socket_lock)),
      rings_(socket_dir_ + "/rings") {}

StatusOr<NodeFiles> NodeFiles::Open(const std::string& node_dir, const std::string& socket_dir) {
  TROUPE_TRY(os::MakePrivateDirectory(node_dir));
  UniqueFd lock = Lock(node_dir);
  if (!lock.valid()) {
    return MakeError(
        ErrorCode::kAlreadyExists,
        "another worker uses " + node_dir + "\n  stop it, or give this one another --node-name");
  }
  TROUPE_TRY(os::MakeSocketDirectory(socket_dir));
  RemoveStale(socket_dir);
  const std::string own = socket_dir + "/" + kPrefix + std::to_string(getpid());
  TROUPE_TRY(os::MakePrivateDirectory(own));
  UniqueFd socket_lock = Lock(own);
  if (!socket_lock.valid()) return os::SystemError("lock " + own);
  NodeFiles files(node_dir, own, std::move(lock), std::move(socket_lock));
  TROUPE_TRY(os::MakePrivateDirectory(files.rings().folder()));
  os::RemoveTree(files.ResultDir());
  TROUPE_TRY(os::MakePrivateDirectory(files.ResultDir()));
  return files;
}

NodeFiles::~NodeFiles() {
  if (socket_lock_.valid()) os::RemoveTree(socket_dir_);
}

RememberedState NodeFiles::Remembered() const {
  RememberedState state;
  const auto json = os::ReadText(node_dir_ + "/node.json");
  if (!json) return state;
  if (json->size() < 2 || json->compare(json->size() - 2, 2, "}\n") != 0) {
    Log(LogLevel::kWarning, "what this node remembers of its last life is damaged, and not used",
        {{"file", node_dir_ + "/node.json"}, {"bytes", json->size()}});
    return state;
  }
  state.incarnation = NumberIn(*json, "incarnation");
  state.head_incarnation = NumberIn(*json, "head_incarnation");
  return state;
}

Status NodeFiles::Save(const SaveState& state) const {
  const std::string json =
      "{\"node_id\":\"" + state.node.Hex() + "\",\"name\":\"" + JsonEscape(state.name) +
      "\",\"pid\":" + std::to_string(getpid()) + ",\"socket\":\"" + JsonEscape(UnixPath()) +
      "\",\"incarnation\":" + std::to_string(state.incarnation) +
      ",\"head_incarnation\":" + std::to_string(state.head_incarnation) + "}\n";
  return net::ReplaceFile(node_dir_ + "/node.json", json, 0600);
}

}  // namespace troupe::worker
