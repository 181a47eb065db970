// Method: a folder of its own in the temporary directory, with the traps a hostile name would use.
#include "runtime/os/directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace troupe::os {
namespace {

class Directory : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/troupe-os-XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override { RemoveTree(root_); }
  std::string root_;
};

TEST_F(Directory, MadeWithParentsAndPrivate) {
  const std::string path = root_ + "/a/b/c";
  ASSERT_TRUE(MakePrivateDirectory(path).ok());
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  chmod(path.c_str(), 0755);
  ASSERT_TRUE(MakePrivateDirectory(path).ok());
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(Directory, OpenBeneathNeverLeaves) {
  ASSERT_TRUE(MakeDirectories(root_ + "/logs/x").ok());
  const UniqueFd secret(open((root_ + "/secret").c_str(), O_CREAT | O_WRONLY, 0600));
  const UniqueFd good(open((root_ + "/logs/x/rank-0.out").c_str(), O_CREAT | O_WRONLY, 0600));
  ASSERT_EQ(symlink("../secret", (root_ + "/logs/link").c_str()), 0);
  const auto logs = OpenDirectory(root_ + "/logs");
  ASSERT_TRUE(logs.ok());
  EXPECT_TRUE(OpenBeneath(*logs, "x/rank-0.out", O_RDONLY).ok());
  EXPECT_FALSE(OpenBeneath(*logs, "../secret", O_RDONLY).ok());
  EXPECT_FALSE(OpenBeneath(*logs, root_ + "/secret", O_RDONLY).ok());
  EXPECT_FALSE(OpenBeneath(*logs, "link", O_RDONLY).ok());
  EXPECT_FALSE(OpenBeneath(*logs, "x", O_RDONLY).ok()) << "a folder is not a file";
  EXPECT_EQ(ErrorCodeOf(OpenBeneath(*logs, "x/none", O_RDONLY).status()), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace troupe::os
