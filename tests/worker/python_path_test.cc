// Folders of a PYTHONPATH from which the node's own processes import: real folders, each kind once.
#include "worker/python_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace troupe::worker {
namespace {

namespace fs = std::filesystem;

class PythonPathTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }

  std::string Folder(const std::string& name) const {
    fs::create_directories(root_ / name);
    return (root_ / name).string();
  }

  const fs::path root_ =
      fs::path(testing::TempDir()) / ("python_path_test-" + std::to_string(getpid()));
};

TEST_F(PythonPathTest, OnlyFoldersOfInstalledPackagesAndOfTroupeAreTheNodesOwn) {
  const std::string project = Folder("project");
  std::ofstream(project + "/tqdm.py") << "raise SystemExit\n";
  Folder("project/package.egg-info");  // editable installation: the folder is the program's
  const std::string named = Folder("lib/site-packages");
  const std::string target = Folder("target");
  Folder("target/numpy-2.0.dist-info");
  const std::string sources = Folder("sources");
  Folder("sources/troupe/_process");
  std::ofstream(sources + "/troupe/_process/zygote.py") << "";
  const std::string stand_in = Folder("sources/troupe/ray_compat/path");

  const PythonPath path = SplitPythonPath(
      project + ":" + named + ":" + target + "/:" + sources + ":" + stand_in + ":/missing", "/");
  EXPECT_EQ(path.own, named + ":" + target + ":" + sources + ":" + stand_in);
  EXPECT_EQ(path.programs, (std::vector<std::string>{project, "/missing"}));
}

TEST_F(PythonPathTest, RelativeAndEmptyEntriesAreThePrograms) {
  Folder("lib/site-packages");
  const std::string here = root_.string();
  const PythonPath path = SplitPythonPath(".::lib/site-packages", here);
  EXPECT_EQ(path.own, "");
  EXPECT_EQ(path.programs, (std::vector<std::string>{here, here, here + "/lib/site-packages"}));
  EXPECT_TRUE(SplitPythonPath("", here).programs.empty());
}

}  // namespace
}  // namespace troupe::worker
