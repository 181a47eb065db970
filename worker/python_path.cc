#include "worker/python_path.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace troupe::worker {
namespace {

namespace fs = std::filesystem;

constexpr char kZygoteFile[] = "_process/zygote.py";

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The folder that the package `troupe` lies in, or one inside that package, as those of the
/// packages are that it stands in for.
bool IsOfTroupe(const fs::path& folder) {
  if (Exists(folder / "troupe" / kZygoteFile)) return true;
  for (fs::path above = folder; above.has_relative_path(); above = above.parent_path()) {
    if (above.filename() == "troupe" && Exists(above / kZygoteFile)) return true;
  }
  return false;
}

bool HasInstalledPackages(const fs::path& folder) {
  const fs::path name = folder.filename();
  if (name == "site-packages" || name == "dist-packages") return true;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  return !error && std::any_of(begin(entries), end(entries), [](const fs::directory_entry& each) {
    return each.path().extension() == ".dist-info";
  });
}

}  // namespace

PythonPath SplitPythonPath(std::string_view text, const std::string& directory) {
  PythonPath path;
  while (!text.empty()) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view entry = text.substr(0, colon);
    text.remove_prefix(std::min(colon + 1, text.size()));
    fs::path folder = (fs::path(directory) / entry).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();  // "a/" is "a"
    const bool absolute = !entry.empty() && entry.front() == '/';
    if (absolute && (IsOfTroupe(folder) || HasInstalledPackages(folder))) {
      path.own += (path.own.empty() ? "" : ":") + folder.string();
    } else {
      path.programs.push_back(folder.string());
    }
  }
  return path;
}

}  // namespace troupe::worker
